// Limits of the training room, with their units.
#pragma once

#include <cstddef>
#include <cstdint>

namespace troupe::limits {

inline constexpr std::uint32_t accumulate_max = 4096;              // global batches a step
inline constexpr std::size_t buckets_max = 256;                    // parts of one sum
inline constexpr std::size_t gather_bytes = std::size_t{1} << 20U; // memory a rank through which residuals go

} // namespace troupe::limits
