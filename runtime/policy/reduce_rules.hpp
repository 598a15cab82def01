// Reduce rules: what a reduction over ranks does to one element. One text for the CPU's loops
// (rank_reduction.cpp) and the GPU's kernel (transports/nccl/kernels.cu).
//
// IEEE additions and divisions, comparisons and integer arithmetic only, in the order written; so the bits
// are the same.
// Invariants: RR-1 to RR-3 (rank_reduction.hpp), HF-1, HF-2 (half_float.hpp).
#pragma once

#include <cstdint>
#include <limits>
#include <type_traits>

#include "runtime/policy/half_float.hpp"
#include "runtime/seams/element_type.hpp"

namespace troupe::reduce_rules {

// How an element type is stored, and what it is computed as.
template <class Value>
struct plain_codec {
  using stored = Value;
  using computed = Value;
  static constexpr computed load(stored value) { return value; }
  static constexpr stored store(computed value) { return value; }
};

struct float16_codec {
  using stored = std::uint16_t;
  using computed = float;
  static constexpr computed load(stored value) { return float16_to_float(value); }
  static constexpr stored store(computed value) { return float_to_float16(value); }
};

struct bfloat16_codec {
  using stored = std::uint16_t;
  using computed = float;
  static constexpr computed load(stored value) { return bfloat16_to_float(value); }
  static constexpr stored store(computed value) { return float_to_bfloat16(value); }
};

struct add {
  template <class Value>
  static constexpr Value combine(Value left, Value right) {
    if constexpr (std::is_integral_v<Value>) {
      using wrapping = std::make_unsigned_t<Value>;
      return static_cast<Value>(static_cast<wrapping>(left) + static_cast<wrapping>(right));
    } else {
      return left + right;
    }
  }
};

// RR-3: a NaN is not equal to itself, and not comparable.
struct smaller {
  template <class Value>
  static constexpr Value combine(Value left, Value right) {
    return left != left || left <= right ? left : right;
  }
};

struct larger {
  template <class Value>
  static constexpr Value combine(Value left, Value right) {
    return left != left || left >= right ? left : right;
  }
};

// RR-2
template <class Value>
constexpr Value one_nan(Value value) {
  if constexpr (std::is_floating_point_v<Value>)
    return value != value ? std::numeric_limits<Value>::quiet_NaN() : value;
  else
    return value;
}

// Partial results that `reduced` holds at a time, for up to 2^15 ranks.
inline constexpr std::uint32_t depth_max = 16;

// One element, from what `value_of(rank)` gives for every rank: the tree of canonical_plan.hpp with a shard a
// rank, walked by the bits of the rank: after rank r, as many complete nodes are joined as r ends in ones;
// in the end, what is left is joined from the right.
template <class Op, class Value, class ValueOf>
constexpr Value along_the_tree(std::uint32_t world, ValueOf value_of) {
  Value stack[depth_max]{};
  std::uint32_t depth = 0;
  for (std::uint32_t rank = 0; rank < world; ++rank) {
    stack[depth++] = value_of(rank);
    for (std::uint32_t bits = rank; (bits & 1U) != 0; bits >>= 1) {
      --depth;
      stack[depth - 1] = Op::combine(stack[depth - 1], stack[depth]);
    }
  }
  for (; depth > 1; --depth)
    stack[depth - 2] = Op::combine(stack[depth - 2], stack[depth - 1]);
  return stack[0];
}

template <class Value, class ValueOf>
constexpr Value reduced(reduce_op op, std::uint32_t world, ValueOf value_of) {
  switch (op) {
  case reduce_op::sum:
    return one_nan(along_the_tree<add, Value>(world, value_of));
  case reduce_op::avg:
    return one_nan(along_the_tree<add, Value>(world, value_of) / static_cast<Value>(world));
  case reduce_op::min:
    return one_nan(along_the_tree<smaller, Value>(world, value_of));
  case reduce_op::max:
    return one_nan(along_the_tree<larger, Value>(world, value_of));
  }
  return {};
}

} // namespace troupe::reduce_rules
