#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include "runtime/base/counter_rng.hpp"
#include "runtime/policy/half_float.hpp"
#include "runtime/policy/wire_format.hpp"

namespace troupe {
namespace {

std::vector<float> any_values(std::size_t count) {
  const counter_rng random{5, 6};
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i)
    values[i] =
        std::bit_cast<float>(static_cast<std::uint32_t>(random.block(i)[0])); // NaNs and infinities too
  return values;
}

bool same_bits(float a, float b) {
  return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b);
}

TEST_CASE("wire format: rounds gradients and leaves what follows them alone (WF-1)") {
  const auto given = any_values(1000);
  for (const auto type : {element_type::float16, element_type::bfloat16}) {
    const wire_format format{type, 960};
    auto whole = given;
    format.round(whole, 0);
    for (std::size_t i = 0; i < given.size(); ++i) {
      const auto half = type == element_type::float16 ? float16_to_float(float_to_float16(given[i]))
                                                      : bfloat16_to_float(float_to_bfloat16(given[i]));
      CHECK(same_bits(whole[i], i < 960 ? half : given[i]));
    }
    auto pieces = given; // however it is cut
    for (std::size_t begin = 0; begin < given.size(); begin += 37)
      format.round(std::span{pieces}.subspan(begin, std::min<std::size_t>(37, given.size() - begin)), begin);
    for (std::size_t i = 0; i < given.size(); ++i)
      CHECK(same_bits(pieces[i], whole[i]));
  }
}

TEST_CASE("wire format: packing rounded values loses nothing, in any pieces (WF-2, WF-3)") {
  for (const auto type : {element_type::float32, element_type::float16, element_type::bfloat16}) {
    const wire_format format{type, 960};
    auto values = any_values(1000);
    format.round(values, 0);
    const auto bytes = format.bytes({0, values.size()});
    CHECK(bytes == (type == element_type::float32 ? 4000U : 960U * 2 + 40U * 4));
    std::vector<std::byte> packed(bytes);
    std::size_t used = 0;
    std::vector<float> back(values.size());
    for (const element_range part : {element_range{0, 5}, {5, 950}, {950, 970}, {970, 1000}}) {
      const std::span from{values};
      used += format.pack(from.subspan(part.begin, part.size()), part.begin,
                          packed.data() + format.offset(part.begin));
      CHECK(format.bytes(part) == format.offset(part.end) - format.offset(part.begin));
    }
    CHECK(used == bytes);
    CHECK(format.unpack(packed, 0, back));
    for (std::size_t i = 0; i < values.size(); ++i)
      CHECK(same_bits(back[i], values[i]));
  }
}

} // namespace
} // namespace troupe
