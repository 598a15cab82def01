// Limits that every room shares, with their units. A room's own limits stand in its own limits.hpp.
#pragma once

#include <cstddef>
#include <cstdint>

namespace troupe::limits {

inline constexpr std::uint32_t workers_max = 1024;
inline constexpr std::uint32_t shards_max = 4096;
inline constexpr std::uint32_t rank_groups_max = 32;  // of one communicator, the first one included
inline constexpr std::uint32_t group_calls_max = 256; // of one member in one rank group, under way
inline constexpr std::uint32_t global_batch_max = 1U << 20;
inline constexpr std::size_t envelope_bytes_max = 256 * 1024;             // larger payloads travel as bulk
inline constexpr std::size_t payload_bytes_max = envelope_bytes_max + 64; // of a transport's message
inline constexpr std::size_t bulk_bytes_max = std::size_t{1} << 34;
inline constexpr std::size_t bucket_bytes_min = 64; // of gradients that are summed together; 0 is no buckets
inline constexpr std::size_t bucket_bytes_max = std::size_t{1} << 30;
inline constexpr std::uint32_t top_k_shards_max = 64; // each has a residual as long as the parameters
static_assert(top_k_shards_max <= group_calls_max);   // residuals are gathered with a call each, all at once
inline constexpr double top_k_min = 0.0001;
inline constexpr double top_k_max = 0.5; // above, a list of entries is longer than all of them
inline constexpr std::size_t error_text_bytes_max = 4096;
inline constexpr std::size_t name_bytes_max = 256;

} // namespace troupe::limits
