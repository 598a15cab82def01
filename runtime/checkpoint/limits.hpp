// Limits of the checkpoint room. Whatever is read from storage is checked against them before it is used.
#pragma once

#include <cstddef>
#include <cstdint>

namespace troupe::limits {

inline constexpr std::size_t checkpoint_tensors_max = 65536;                    // parameters of one program
inline constexpr std::size_t checkpoint_dimensions_max = 16;                    // of one tensor
inline constexpr std::size_t checkpoint_slots_max = 80;                         // of the optimizer, of shards
inline constexpr std::size_t checkpoint_files_max = 8192;                       // of one version
inline constexpr std::size_t shard_header_bytes_max = std::size_t{32} << 20;    // JSON header of one file
inline constexpr std::size_t manifest_bytes_max = std::size_t{8} << 20;         // manifest.json
inline constexpr std::size_t manifest_text_bytes_max = 4096;                    // one descriptive string
inline constexpr std::size_t json_depth_max = 8;                                // nesting we ever write: 4
inline constexpr std::uint64_t shard_bytes_default = std::uint64_t{1} << 30;    // split above this
inline constexpr std::size_t verify_chunk_bytes = std::size_t{1} << 20;         // read at once by verify
inline constexpr std::uint64_t parameter_elements_max = std::uint64_t{1} << 40; // per segment
inline constexpr std::size_t checkpoint_versions_max = 100000;                  // looked at in one directory

} // namespace troupe::limits
