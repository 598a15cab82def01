// Limits of the NCCL collective, with their units.
#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/base/time.hpp"

namespace troupe::limits {

inline constexpr std::size_t nccl_descriptor_bytes_max = 1024;
// Looks at work under way that follow each other at once; afterwards the clock seam spaces them.
inline constexpr std::uint32_t nccl_eager_looks_max = 1000;
inline constexpr duration nccl_look_interval = std::chrono::microseconds{50};
// Partial sums that one element of a canonical sum holds at a time: log2(shards_max) + 2, rounded up.
inline constexpr std::uint32_t nccl_sum_depth_max = 16;
// The next generations get by without asking the device for memory up to so many ranks, or so many more.
inline constexpr std::uint32_t nccl_worlds_min = 64;
inline constexpr std::uint32_t nccl_joined_ranks_max = 8;
// An all-reduce up to here: everybody reduces all of it.
inline constexpr std::size_t nccl_group_exchange_bytes_max = std::size_t{16} * 1024;

} // namespace troupe::limits
