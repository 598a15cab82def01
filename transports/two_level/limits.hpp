// Limits of the two-level room, with their units.
#pragma once

#include <cstddef>

#include "runtime/base/limits.hpp"

namespace troupe::limits {

inline constexpr std::size_t level_heard_max = workers_max + 64; // processes that spoke of a later generation
inline constexpr std::size_t level_place_bytes_max = 256;        // a descriptor of the level inside
inline constexpr std::size_t level_descriptor_bytes_max = 16 * 1024;
// What a host's ranks share for handing the sum on; larger sums go through it in pieces of half of it.
inline constexpr std::size_t level_handing_bytes_min = 4096;
inline constexpr std::size_t level_handing_bytes_max = 1024 * 1024;

} // namespace troupe::limits
