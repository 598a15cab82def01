// Pixel scaling: unsigned bytes to float32, through a table of 256 entries.
//
// The table is the definition: value(x) = (x / 255 - mean) / deviation, rounded once an operation in float32.
// The vector form only looks up, so it gives the table's bits on every machine.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "runtime/base/error.hpp"

namespace troupe {

struct pixel_scaling {
  float mean{0.0F};      // of x / 255
  float deviation{1.0F}; // above 0
};

using pixel_table = std::array<float, 256>;

// errc::bad_argument for values that are not finite, or a deviation that is not above 0.
[[nodiscard]] expected<pixel_table> make_pixel_table(pixel_scaling scaling);
// `into` has as many elements as `pixels`; both unaligned. No allocation.
void scale_pixels(std::span<const std::uint8_t> pixels, const pixel_table& table, std::span<float> into);

} // namespace troupe
