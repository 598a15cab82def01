// Checkpoint reader: fills a state from a version on storage.
//
// Flow:     catalog -> verified_version -> [reader] -> state arena
// Owns:     nothing.
// Runs on:  the storage executor.
// Fails:    errc::corrupt (digest, form, a tensor missing or unknown), errc::wrong_program, storage errors;
//           the arena's content is then unspecified.
// Invariants:
//   CK-6    nothing read from storage is used before its form, size and place were checked.
//   CK-7    a load fills the whole state from one version, digests compared while reading, or it fails.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "runtime/base/error.hpp"
#include "runtime/checkpoint/catalog.hpp"
#include "runtime/checkpoint/layout.hpp"
#include "runtime/checkpoint/manifest.hpp"
#include "runtime/seams/storage.hpp"

namespace troupe {

// `arena` is at least layout.state_bytes() long, float32; padding becomes zero. One pass over the files.
[[nodiscard]] expected<checkpoint_metadata> load_version(storage& files, const verified_version& version,
                                                         const state_layout& layout,
                                                         std::span<std::byte> arena);

// Where a tensor lies on storage; for tools that have no layout.
struct stored_tensor {
  std::string segment;
  std::string name;
  std::vector<std::uint64_t> shape;
  std::string path;
  std::uint64_t offset{0}; // in the file
  std::uint64_t bytes{0};
};

// In the order of the manifest's files. errc::corrupt where a tensor appears twice.
[[nodiscard]] expected<std::vector<stored_tensor>> index_version(storage& files, const std::string& path,
                                                                 const manifest& version);

} // namespace troupe
