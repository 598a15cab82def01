// Reductions over ranks as plainly as they can be written, and values on which mistakes show.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <type_traits>
#include <vector>

#include "runtime/base/counter_rng.hpp"
#include "runtime/policy/half_float.hpp"
#include "runtime/seams/rank_group.hpp"

namespace troupe::group_reference {

using bytes = std::vector<std::byte>;

inline constexpr element_type all_types[]{element_type::float32, element_type::float64,
                                          element_type::float16, element_type::bfloat16,
                                          element_type::int32,   element_type::int64};
inline constexpr reduce_op all_ops[]{reduce_op::sum, reduce_op::avg, reduce_op::min, reduce_op::max};

template <class Stored>
Stored read(const bytes& from, std::size_t index) {
  Stored value;
  std::memcpy(&value, from.data() + index * sizeof value, sizeof value);
  return value;
}

template <class Stored>
void write(bytes& into, std::size_t index, Stored value) {
  std::memcpy(into.data() + index * sizeof value, &value, sizeof value);
}

// Floating point: of very different size, so that another order of additions gives other bits; some zeros of
// both signs, infinities and NaNs. Integers: so large that sums overflow.
inline double interesting(std::uint64_t seed, std::uint32_t rank, std::size_t index) {
  const auto words = counter_rng{seed, rank}.block(index);
  const auto choice = words[2] % 64;
  if (choice == 0) return std::numeric_limits<double>::quiet_NaN();
  if (choice == 1) return std::numeric_limits<double>::infinity();
  if (choice < 6) return choice % 2 == 0 ? 0.0 : -0.0;
  const double mantissa = static_cast<double>(words[0]) * 0x1p-31 - 1.0;
  return std::ldexp(mantissa, static_cast<int>(words[1] % 25) - 14);
}

inline bytes values(std::uint64_t seed, std::uint32_t rank, element_type type, std::size_t elements) {
  bytes made(elements * size_of(type));
  for (std::size_t i = 0; i < elements; ++i) {
    const auto words = counter_rng{seed, rank}.block(i);
    const auto integer = static_cast<std::uint64_t>(words[0]) << 32 | words[1];
    const auto real = interesting(seed, rank, i);
    switch (type) {
    case element_type::float32:
      write(made, i, static_cast<float>(real));
      break;
    case element_type::float64:
      write(made, i, real);
      break;
    case element_type::float16:
      write(made, i, float_to_float16(static_cast<float>(real)));
      break;
    case element_type::bfloat16:
      write(made, i, float_to_bfloat16(static_cast<float>(real)));
      break;
    case element_type::int32:
      write(made, i, static_cast<std::uint32_t>(integer));
      break;
    case element_type::int64:
      write(made, i, integer);
      break;
    }
  }
  return made;
}

template <class Value>
Value combine(reduce_op op, Value left, Value right) {
  if (op == reduce_op::sum || op == reduce_op::avg) {
    if constexpr (std::is_integral_v<Value>) {
      using wrapping = std::make_unsigned_t<Value>;
      return static_cast<Value>(static_cast<wrapping>(left) + static_cast<wrapping>(right));
    } else {
      return left + right;
    }
  }
  if constexpr (std::is_floating_point_v<Value>) {
    if (std::isnan(left)) return left;
    if (std::isnan(right)) return right;
  }
  if (op == reduce_op::min) return right < left ? right : left;
  return right > left ? right : left;
}

template <class Value>
Value tree(reduce_op op, std::span<const Value> by_rank) {
  if (by_rank.size() == 1) return by_rank[0];
  const auto left = std::bit_floor(by_rank.size() - 1);
  return combine(op, tree(op, by_rank.first(left)), tree(op, by_rank.subspan(left)));
}

template <class Stored, class Value, class Load, class Store>
bytes reduce_as(reduce_op op, const std::vector<bytes>& inputs, Load load, Store store) {
  bytes result(inputs[0].size());
  for (std::size_t i = 0; i < result.size() / sizeof(Stored); ++i) {
    std::vector<Value> by_rank;
    for (const auto& input : inputs)
      by_rank.push_back(load(read<Stored>(input, i)));
    auto value = tree<Value>(op, by_rank);
    if (op == reduce_op::avg) value /= static_cast<Value>(inputs.size());
    if constexpr (std::is_floating_point_v<Value>)
      if (std::isnan(value)) value = std::numeric_limits<Value>::quiet_NaN();
    write(result, i, store(value));
  }
  return result;
}

// What all_reduce gives every rank.
inline bytes reduce(element_type type, reduce_op op, const std::vector<bytes>& inputs) {
  const auto same = [](auto value) { return value; };
  switch (type) {
  case element_type::float32:
    return reduce_as<float, float>(op, inputs, same, same);
  case element_type::float64:
    return reduce_as<double, double>(op, inputs, same, same);
  case element_type::float16:
    return reduce_as<std::uint16_t, float>(op, inputs, float16_to_float, float_to_float16);
  case element_type::bfloat16:
    return reduce_as<std::uint16_t, float>(op, inputs, bfloat16_to_float, float_to_bfloat16);
  case element_type::int32:
    return reduce_as<std::int32_t, std::int32_t>(op, inputs, same, same);
  case element_type::int64:
    return reduce_as<std::int64_t, std::int64_t>(op, inputs, same, same);
  }
  return {};
}

} // namespace troupe::group_reference
