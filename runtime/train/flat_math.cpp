#include "runtime/train/flat_math.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <numbers>

#include "runtime/base/invariant.hpp"

namespace troupe {

namespace {

constexpr std::size_t lanes = 16;
constexpr std::size_t block_elements = 4096;

double block_sum_of_squares(const float* values, std::size_t count) noexcept {
  std::array<double, lanes> sums{};
  for (std::size_t i = 0; i < count; i += lanes)
    for (std::size_t lane = 0; lane < lanes; ++lane) {
      const double value = values[i + lane];
      sums[lane] += value * value;
    }
  for (std::size_t half = lanes / 2; half > 0; half /= 2)
    for (std::size_t lane = 0; lane < half; ++lane)
      sums[lane] += sums[lane + half];
  return sums[0];
}

// Taylor series of cosine; |x| <= pi/2, where the first omitted term is below 2^-60.
double cosine_near_zero(double x) noexcept {
  const double square = x * x;
  double sum = 1.0;
  for (int k = 20; k > 0; k -= 2)
    sum = 1.0 - square / (k * (k - 1)) * sum;
  return sum;
}

} // namespace

double sum_of_squares(std::span<const float> values) noexcept {
  invariant(values.size() % lanes == 0, "sum_of_squares: a multiple of 16 elements");
  double sum = 0;
  for (std::size_t begin = 0; begin < values.size(); begin += block_elements)
    sum += block_sum_of_squares(values.data() + begin, std::min(block_elements, values.size() - begin));
  return sum;
}

// Exponent bits of all ones mean NaN or infinity; as integers they are the largest.
bool all_finite(std::span<const float> values) noexcept {
  invariant(values.size() % lanes == 0, "all_finite: a multiple of 16 elements");
  constexpr std::uint32_t sign = 0x8000'0000U;
  constexpr std::uint32_t infinity = 0x7f80'0000U;
  std::array<std::uint32_t, lanes> largest{};
  for (std::size_t i = 0; i < values.size(); i += lanes)
    for (std::size_t lane = 0; lane < lanes; ++lane)
      largest[lane] = std::max(largest[lane], std::bit_cast<std::uint32_t>(values[i + lane]) & ~sign);
  return *std::ranges::max_element(largest) < infinity;
}

double cos_pi(double x) noexcept {
  return x <= 0.5 ? cosine_near_zero(std::numbers::pi * x) : -cosine_near_zero(std::numbers::pi * (1.0 - x));
}

double power(double base, unsigned long long exponent) noexcept {
  double result = 1.0;
  for (; exponent > 0; exponent >>= 1) {
    if ((exponent & 1U) != 0) result *= base;
    base *= base;
  }
  return result;
}

} // namespace troupe
