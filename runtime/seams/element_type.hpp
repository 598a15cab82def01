// Element types and reductions by name: what calls between ranks, and kernels, agree on.
#pragma once

#include <cstddef>
#include <cstdint>

namespace troupe {

enum class element_type : std::uint8_t { float32, float64, float16, bfloat16, int32, int64 };
inline constexpr std::size_t element_types = 6;

// Bytes of one element.
[[nodiscard]] constexpr std::size_t size_of(element_type type) {
  constexpr std::size_t bytes[element_types]{4, 8, 2, 2, 4, 8};
  return bytes[static_cast<std::size_t>(type)];
}

// `avg` is the sum divided by the number of members (integers: towards zero). min and max: a NaN wins; of
// zeros with both signs the lowest rank's.
enum class reduce_op : std::uint8_t { sum, avg, min, max };

} // namespace troupe
