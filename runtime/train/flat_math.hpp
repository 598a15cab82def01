// Loops over flat float32 arrays whose bits are fixed: the order of every sum is written out.
//
// Elementwise loops give the same bits however they are vectorised; sums use a fixed number of lanes, fixed
// blocks, and double accumulators. No fast-math anywhere.
#pragma once

#include <cstddef>
#include <span>

namespace troupe {

// Sum of squares in double: 16 lanes within a block of 4096 elements, lanes folded in halves, blocks in
// order. A multiple of 16 elements.
[[nodiscard]] double sum_of_squares(std::span<const float> values) noexcept;

// Neither NaN nor infinite, all of them. A multiple of 16 elements; about as fast as reading them.
[[nodiscard]] bool all_finite(std::span<const float> values) noexcept;

// cos(pi * x) for x in [0, 1], from basic operations only: the same bits with every C library.
[[nodiscard]] double cos_pi(double x) noexcept;

// base^exponent by repeated squaring, from basic operations only.
[[nodiscard]] double power(double base, unsigned long long exponent) noexcept;

} // namespace troupe
