// Launch: starts a program, waits for it, and leaves no process behind (`troupe run`).
//
// A Troupe program is its own director: one copy is started, with `--workers N` where N was asked for.
// Of a foreign program N copies are started, with the variables that such programs look for: RANK,
// WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, MASTER_ADDR, MASTER_PORT (loopback, a port that was free).
// A copy that fails ends the others: SIGTERM, the grace, SIGKILL. Signals are passed on. What the copies
// leave running is ended too, once they have ended.
// Runs on:  its caller's thread, until the end. For a `main`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/launch/launch_core.hpp"
#include "cli/launch/program_file.hpp"
#include "runtime/base/error.hpp"
#include "runtime/base/time.hpp"

namespace troupe {

struct launch_request {
  std::string program;
  std::vector<std::string> arguments;
  std::optional<std::uint32_t> copies; // Troupe: its workers; foreign: copies (1)
  std::optional<program_kind> as;      // none: looked up in the program's file
  std::optional<duration> grace;       // none: `foreign_grace`, `troupe_grace`
};

inline constexpr duration foreign_grace = std::chrono::seconds{5};
// A Troupe program ends its own workers and writes its last checkpoint first.
inline constexpr duration troupe_grace = std::chrono::seconds{90};
inline constexpr std::uint32_t copies_max = 4096;

struct launch_result {
  std::string path;
  program_kind kind{program_kind::foreign};
  std::vector<std::int64_t> pids; // by rank
  launch_core core{0};
  duration wall{0};
};

// The variables of one foreign copy, as "NAME=value".
[[nodiscard]] std::vector<std::string> copy_variables(std::uint32_t rank, std::uint32_t copies,
                                                      std::uint16_t port);
// What a Troupe program is started with: the number of workers, then the arguments as given.
[[nodiscard]] std::vector<std::string> troupe_arguments(const launch_request& request);

// errc::bad_argument: no such program; nothing was started.
[[nodiscard]] expected<launch_result> launch(const launch_request& request);

// One JSON object, without a line end.
[[nodiscard]] std::string to_json(const launch_request& request, const launch_result& result);

} // namespace troupe
