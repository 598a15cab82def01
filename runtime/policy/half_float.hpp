// Half floats: float16 (IEEE 754 binary16) and bfloat16, from and to float32.
//
// Plain integer arithmetic without branches, so that loops over these vectorise and no processor mode (other
// rounding of subnormals, other NaNs) changes a bit.
// Invariants:
//   HF-1    to float32 is exact for all 65,536 values, NaNs with their payload; there and back changes
//           nothing.
//   HF-2    from float32 rounds once, to nearest even; what is too large becomes an infinity; a NaN stays
//           one.
#pragma once

#include <bit>
#include <cstdint>

namespace troupe {

[[nodiscard]] constexpr float float16_to_float(std::uint16_t half) {
  const std::uint32_t sign = (half & 0x8000U) << 16;
  const std::uint32_t magnitude = half & 0x7fffU;
  const std::uint32_t normal = (magnitude << 13) + (112U << 23);
  const auto subnormal =
      std::bit_cast<std::uint32_t>(static_cast<float>(static_cast<std::int32_t>(magnitude)) * 0x1p-24F);
  const std::uint32_t special = (magnitude << 13) | 0x7f800000U;
  const std::uint32_t finite = magnitude < 0x0400U ? subnormal : normal;
  return std::bit_cast<float>(sign | (magnitude >= 0x7c00U ? special : finite));
}

[[nodiscard]] constexpr std::uint16_t float_to_float16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = (bits >> 16) & 0x8000U;
  const std::uint32_t magnitude = bits & 0x7fffffffU;
  const std::uint32_t rounded = (magnitude - (112U << 23) + 0x0fffU + ((magnitude >> 13) & 1U)) >> 13;
  const std::uint32_t normal = magnitude >= 0x47800000U ? 0x7c00U : rounded; // from 2^16: infinity
  // Beside 0.5 the last place of a float32 is 2^-24, that of a subnormal: the addition rounds.
  const float tiny = magnitude < 0x38800000U ? std::bit_cast<float>(magnitude) : 0.0F;
  const std::uint32_t subnormal = std::bit_cast<std::uint32_t>(tiny + 0.5F) - 0x3f000000U;
  const std::uint32_t payload = (magnitude >> 13) & 0x03ffU;
  const std::uint32_t special = 0x7c00U | payload | (payload == 0U ? 0x0200U : 0U);
  const std::uint32_t finite = magnitude < 0x38800000U ? subnormal : normal;
  return static_cast<std::uint16_t>(sign | (magnitude > 0x7f800000U ? special : finite));
}

[[nodiscard]] constexpr float bfloat16_to_float(std::uint16_t half) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(half) << 16);
}

[[nodiscard]] constexpr std::uint16_t float_to_bfloat16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t rounded = (bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16;
  const std::uint32_t cut = bits >> 16;
  const std::uint32_t special = cut | ((cut & 0x7fU) == 0U ? 0x40U : 0U);
  return static_cast<std::uint16_t>((bits & 0x7fffffffU) > 0x7f800000U ? special : rounded);
}

} // namespace troupe
