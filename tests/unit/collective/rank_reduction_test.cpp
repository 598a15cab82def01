// Half floats and reductions over ranks, against plain references.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include "runtime/policy/half_float.hpp"
#include "runtime/policy/rank_reduction.hpp"
#include "tests/unit/collective/group_reference.hpp"

namespace troupe {
namespace {

namespace plain = group_reference;
using plain::bytes;

// By the definition of the format, in float64.
double float16_by_definition(std::uint16_t half) {
  const double sign = (half & 0x8000) != 0 ? -1.0 : 1.0;
  const int exponent = (half >> 10) & 0x1f;
  const int mantissa = half & 0x3ff;
  if (exponent == 0x1f) return mantissa == 0 ? sign * INFINITY : NAN;
  if (exponent == 0) return sign * std::ldexp(mantissa, -24);
  return sign * std::ldexp(1024 + mantissa, exponent - 25);
}

bool is_nan16(std::uint32_t half, std::uint32_t infinity) {
  return (half & 0x7fffU) > infinity;
}

TEST_CASE("half floats: all 65,536 values are exact in float32, and come back (HF-1)") {
  for (std::uint32_t half = 0; half < 65'536; ++half) {
    const auto bits = static_cast<std::uint16_t>(half);
    const auto known = float16_by_definition(bits);
    const auto found = float16_to_float(bits);
    if (std::isnan(known)
            ? !std::isnan(found)
            : std::bit_cast<std::uint64_t>(static_cast<double>(found)) != std::bit_cast<std::uint64_t>(known))
      FAIL("float16 " << half);
    if (float_to_float16(found) != bits) FAIL("float16 back " << half);
    if (std::bit_cast<std::uint32_t>(bfloat16_to_float(bits)) != half << 16) FAIL("bfloat16 " << half);
    if (float_to_bfloat16(bfloat16_to_float(bits)) != bits) FAIL("bfloat16 back " << half);
  }
}

// Between any two neighbours: just below the middle, the middle, just above it.
template <class ToFloat, class FromFloat>
void rounds_to_nearest_even(std::uint16_t infinity, ToFloat to_float, FromFloat from_float) {
  for (std::uint16_t low = 0; low + 1 < infinity; ++low) {
    const auto high = static_cast<std::uint16_t>(low + 1);
    const float middle = (to_float(low) / 2) + (to_float(high) / 2);
    const auto even = low % 2 == 0 ? low : high;
    for (const std::uint32_t sign : {0x0000U, 0x8000U}) {
      const auto check = [&](float value, std::uint16_t rounded) {
        const auto signed_value = sign != 0 ? -value : value;
        if (from_float(signed_value) != (rounded | sign))
          FAIL(value << " between " << low << " and " << high);
      };
      check(std::nextafter(middle, 0.0F), low);
      check(middle, even);
      check(std::nextafter(middle, INFINITY), high);
    }
  }
}

TEST_CASE("half floats: from float32 rounds to nearest even, to infinity beyond the largest (HF-2)") {
  rounds_to_nearest_even(0x7c00, float16_to_float, float_to_float16);
  CHECK(float_to_float16(65'519.996F) == 0x7bff);
  CHECK(float_to_float16(65'520.0F) == 0x7c00);
  CHECK(float_to_float16(3e38F) == 0x7c00);
  CHECK(float_to_float16(-INFINITY) == 0xfc00);
  CHECK(float_to_float16(0x1p-25F) == 0);
  CHECK(float_to_float16(std::nextafter(0x1p-25F, 1.0F)) == 1);
  CHECK(float_to_float16(-1e-42F) == 0x8000);
  CHECK(float_to_bfloat16(std::bit_cast<float>(0x3f808000U)) == 0x3f80); // the middle, even below
  CHECK(float_to_bfloat16(std::bit_cast<float>(0x3f818000U)) == 0x3f82); // the middle, even above
  CHECK(float_to_bfloat16(std::bit_cast<float>(0x3f808001U)) == 0x3f81);
  CHECK(float_to_bfloat16(std::bit_cast<float>(0x7f7fffffU)) == 0x7f80);
  for (const auto bits : {0x7f800001U, 0xff800001U, 0x7fc00000U, 0x7fffffffU}) {
    CHECK(is_nan16(float_to_float16(std::bit_cast<float>(bits)), 0x7c00));
    CHECK(is_nan16(float_to_bfloat16(std::bit_cast<float>(bits)), 0x7f80));
  }
}

struct reduced {
  std::vector<bytes> inputs;
  std::vector<const std::byte*> pointers;
  reduced(std::uint32_t world, element_type type, std::size_t elements) {
    for (std::uint32_t rank = 0; rank < world; ++rank)
      inputs.push_back(plain::values(17, rank, type, elements));
    for (const auto& input : inputs)
      pointers.push_back(input.data());
  }
};

TEST_CASE("rank reduction: every type and operation is that of the tree over the ranks (GR-4, RR-1)") {
  for (const std::uint32_t world : {1U, 2U, 3U, 5U, 8U, 13U}) {
    rank_reduction reduction{world};
    for (const auto type : plain::all_types)
      for (const auto op : plain::all_ops)
        for (const std::size_t elements : {0U, 1U, 7U, 2048U, 5003U}) {
          CAPTURE(world, static_cast<int>(type), static_cast<int>(op), elements);
          const reduced given{world, type, elements};
          const auto known = plain::reduce(type, op, given.inputs);
          bytes whole(elements * size_of(type));
          reduction.evaluate(type, op, given.pointers, elements, whole.data());
          CHECK(whole == known);
          const auto cut = elements / 3; // in two pieces: the same bits
          auto moved = given.pointers;
          for (auto& pointer : moved)
            pointer += cut * size_of(type);
          bytes pieces(whole.size());
          reduction.evaluate(type, op, given.pointers, cut, pieces.data());
          reduction.evaluate(type, op, moved, elements - cut, pieces.data() + cut * size_of(type));
          CHECK(pieces == known);
        }
  }
}

TEST_CASE("rank reduction: the result may replace an input, anywhere in memory") {
  constexpr std::size_t elements = 6000;
  for (const auto type : plain::all_types) {
    reduced given{3, type, elements};
    const auto known = plain::reduce(type, reduce_op::sum, given.inputs);
    bytes odd(known.size() + 1); // aligned to nothing
    std::copy(given.inputs[1].begin(), given.inputs[1].end(), odd.begin() + 1);
    given.pointers[1] = odd.data() + 1;
    rank_reduction{3}.evaluate(type, reduce_op::sum, given.pointers, elements, odd.data() + 1);
    CHECK(std::equal(known.begin(), known.end(), odd.begin() + 1));
  }
}

template <class Stored>
Stored reduce_values(element_type type, reduce_op op, const std::vector<Stored>& by_rank) {
  std::vector<const std::byte*> inputs;
  for (const auto& value : by_rank)
    inputs.push_back(reinterpret_cast<const std::byte*>(&value));
  Stored result{};
  rank_reduction{static_cast<std::uint32_t>(by_rank.size())}.evaluate(type, op, inputs, 1,
                                                                      reinterpret_cast<std::byte*>(&result));
  return result;
}

TEST_CASE("rank reduction: NaNs, zeros, overflow and rounding, value by value (RR-2, RR-3)") {
  using list = std::vector<float>;
  const auto f32 = [](reduce_op op, const list& values) {
    return std::bit_cast<std::uint32_t>(reduce_values(element_type::float32, op, values));
  };
  const float odd_nan = std::bit_cast<float>(0xffc12345U);
  for (const auto op : plain::all_ops) {
    CHECK(f32(op, {1.0F, odd_nan, 2.0F}) == 0x7fc00000U);
    CHECK(f32(op, {odd_nan, 1.0F}) == 0x7fc00000U);
    CHECK(f32(op, {odd_nan}) == 0x7fc00000U);
  }
  CHECK(f32(reduce_op::sum, {INFINITY, -INFINITY}) == 0x7fc00000U);
  CHECK(f32(reduce_op::min, {0.0F, -0.0F}) == 0x00000000U);
  CHECK(f32(reduce_op::max, {-0.0F, 0.0F}) == 0x80000000U);

  using int_list = std::vector<std::int32_t>;
  const auto i32 = [](reduce_op op, const int_list& v) { return reduce_values(element_type::int32, op, v); };
  CHECK(i32(reduce_op::sum, {INT32_MAX, 1}) == INT32_MIN);
  CHECK(i32(reduce_op::avg, {-1, -2, -4}) == -2); // -7 / 3, towards zero
  CHECK(i32(reduce_op::min, {5, -7, 3}) == -7);
  CHECK(i32(reduce_op::max, {-5, -7, -6}) == -5);

  // 2048 + 1 + 1: rounded after each addition it would stay 2048 in float16.
  using half_list = std::vector<std::uint16_t>;
  const half_list halves{0x6800, 0x3c00, 0x3c00};
  CHECK(reduce_values(element_type::float16, reduce_op::sum, halves) == 0x6801);
  const half_list brains{0x4380, 0x3f80, 0x3f80}; // 256 + 1 + 1 in bfloat16
  CHECK(reduce_values(element_type::bfloat16, reduce_op::sum, brains) == 0x4381);
}

} // namespace
} // namespace troupe
