// Limits of the data room, with their units.
#pragma once

#include <cstddef>
#include <cstdint>

namespace troupe::limits {

inline constexpr std::uint64_t dataset_samples_max = std::uint64_t{1} << 32;
inline constexpr std::uint32_t dataset_features_max = 1U << 24;
inline constexpr std::uint32_t dataset_classes_max = 256; // labels are uint8
inline constexpr std::uint64_t dataset_bytes_max = std::uint64_t{1} << 36;
inline constexpr std::uint32_t ready_batches_max = 64;
// Deflate expands at most 1032 times: a file that promises more than this is truncated or damaged.
inline constexpr std::uint64_t deflate_ratio_max = 1032;
inline constexpr std::size_t idx_read_bytes = std::size_t{256} << 10;

} // namespace troupe::limits
