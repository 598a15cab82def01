// `troupe ckpt`: looks at checkpoints. Reads only; never changes a directory.
//
//   ckpt ls DIR               one line a version: step, generation, files, bytes, age, status
//   ckpt show DIR [STEP]      everything one version says about itself, and its tensors
//   ckpt verify DIR [STEP]    reads and digests every file; exit 1 where a version is not whole
//   ckpt diff DIR A B         tensor by tensor; exit 1 where they differ
//
// Exit codes: 0 good, 1 something is bad or differs, 2 usage (no such directory or step).
// With `json`, one object on `out` and nothing else there; what went wrong is a line on `err` in any case.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>

#include "runtime/seams/storage.hpp"

namespace CLI {
class App;
}

namespace troupe {

enum class ckpt_action : unsigned char { none, ls, show, verify, diff };

struct ckpt_options {
  ckpt_action action{ckpt_action::none};
  std::string directory;
  std::optional<std::uint64_t> step; // show, verify; the first one of diff
  std::optional<std::uint64_t> other_step;
  bool json{false};
  bool quick{false};           // ls: manifests only, no digests of the data
  std::uint64_t now_unix_s{0}; // for ages; 0: no ages
};

// Adds `ckpt` and its subcommands to `parent`; after parsing, `into.action` says which one was given (none:
// not ckpt). `into` outlives the parse.
CLI::App* register_ckpt(CLI::App& parent, ckpt_options& into);

// Blocks on storage. Returns the exit code.
[[nodiscard]] int run_ckpt(storage& files, const ckpt_options& options, std::ostream& out, std::ostream& err);

} // namespace troupe
