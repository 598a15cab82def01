// Manifest: what one checkpoint version is, written after everything it names.
//
// JSON, `manifest.json`. It carries a digest over itself (over its compact form with sorted keys and without
// the digest), a rule that every later schema keeps: damage is told apart from a newer schema.
//
// Fails:    errc::corrupt (form, limits, own digest), errc::wrong_version (a newer schema),
//           errc::wrong_program (another program or layout).
// Invariants:
//   CK-6    nothing read from storage is used before its form, size and place were checked.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "runtime/base/error.hpp"
#include "runtime/base/ids.hpp"
#include "runtime/checkpoint/layout.hpp"

namespace troupe {

inline constexpr std::uint32_t manifest_schema = 1;

// What a checkpoint says beside the tensors.
struct checkpoint_metadata {
  job_id job;
  step_id step; // optimizer steps applied
  generation_id generation;
  std::uint64_t sample_cursor{0}; // running number of the first sample that was not used yet
  std::uint64_t seed{0};
  std::uint32_t shards{0}; // logical shards of the canonical reduction
  std::uint32_t global_batch{0};
  std::uint32_t world{0};          // workers when it was taken; loading works at another number
  std::string optimizer;           // descriptions, opaque here
  std::string schedule;            //
  std::string wire;                // what gradients were rounded to, and which part of them was summed at
  std::string top_k;               //   once, as the options say it; empty: not said (an older build)
  std::string state_digest;        // as the training loop defines it, opaque here; may be empty
  std::string weights_digest;      // see weights_digest_of; the writer fills it where it is empty
  std::uint64_t written_unix_s{0}; // wall clock as the caller knows it; 0: not said
};

struct manifest_file {
  std::string name;
  std::string segment; // "parameters" or the optimizer slot
  std::uint64_t bytes{0};
  std::string digest; // digest_of the whole file
};

struct manifest {
  std::uint32_t schema{manifest_schema};
  std::string program;
  std::string layout; // state_layout::fingerprint
  checkpoint_metadata metadata;
  std::vector<manifest_file> files;

  [[nodiscard]] std::uint64_t bytes() const; // of all files, without the manifest
};

[[nodiscard]] std::string encode_manifest(const manifest& version);
// `what` names the manifest in errors.
[[nodiscard]] expected<manifest> parse_manifest(std::span<const std::byte> text, const std::string& what);
// errc::wrong_program, naming both.
[[nodiscard]] expected<void> check_belongs(const manifest& version, const state_layout& layout,
                                           const std::string& what);

} // namespace troupe
