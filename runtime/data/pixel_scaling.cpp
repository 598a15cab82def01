#include "runtime/data/pixel_scaling.hpp"

#include <cmath>
#include <cstddef>
#include <string>

#ifdef __AVX2__
#include <immintrin.h>
#endif

#include "runtime/base/invariant.hpp"

namespace troupe {

expected<pixel_table> make_pixel_table(pixel_scaling scaling) {
  if (!std::isfinite(scaling.mean) || !std::isfinite(scaling.deviation) || scaling.deviation <= 0.0F)
    return error{errc::bad_argument, "pixel scaling: mean " + std::to_string(scaling.mean) + ", deviation " +
                                         std::to_string(scaling.deviation) +
                                         ": accepted are finite numbers, the deviation above 0"};
  pixel_table table{};
  for (std::size_t x = 0; x < table.size(); ++x)
    table[x] = (static_cast<float>(x) / 255.0F - scaling.mean) / scaling.deviation;
  return table;
}

void scale_pixels(std::span<const std::uint8_t> pixels, const pixel_table& table, std::span<float> into) {
  invariant(pixels.size() == into.size(), "scale_pixels: one float for each pixel");
  std::size_t i = 0;
#ifdef __AVX2__
  for (; i + 8 <= pixels.size(); i += 8) {
    const __m128i eight = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(pixels.data() + i));
    const __m256 values = _mm256_i32gather_ps(table.data(), _mm256_cvtepu8_epi32(eight), 4);
    _mm256_storeu_ps(into.data() + i, values);
  }
#endif
  for (; i < pixels.size(); ++i)
    into[i] = table[pixels[i]];
}

} // namespace troupe
