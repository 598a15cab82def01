#include "runtime/policy/rank_reduction.hpp"

#include <algorithm>
#include <cstring>

#include "runtime/base/invariant.hpp"
#include "runtime/policy/reduce_rules.hpp"

namespace troupe {

namespace {

using namespace reduce_rules;

template <class Codec>
void load(typename Codec::computed* into, const std::byte* from, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    typename Codec::stored value;
    std::memcpy(&value, from + i * sizeof value, sizeof value);
    into[i] = Codec::load(value);
  }
}

template <class Codec>
void store(std::byte* into, const typename Codec::computed* from, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    const typename Codec::stored out = Codec::store(one_nan(from[i]));
    std::memcpy(into + i * sizeof out, &out, sizeof out);
  }
}

template <class Op, class Value>
void combine(Value* left, const Value* right, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i)
    left[i] = Op::combine(left[i], right[i]);
}

template <class Value>
void combine(reduce_op op, Value* left, const Value* right, std::size_t count) {
  switch (op) {
  case reduce_op::sum:
  case reduce_op::avg:
    return combine<add>(left, right, count);
  case reduce_op::min:
    return combine<smaller>(left, right, count);
  case reduce_op::max:
    return combine<larger>(left, right, count);
  }
}

template <class Value>
void divide(Value* values, std::size_t count, std::uint32_t by) {
  const auto divisor = static_cast<Value>(by);
  for (std::size_t i = 0; i < count; ++i)
    values[i] = values[i] / divisor;
}

} // namespace

rank_reduction::rank_reduction(std::uint32_t world)
    : world_{world}
    , program_{combine_program(world, world)}
    , stack_(program_.stack_depth) {}

void rank_reduction::evaluate(element_type type, reduce_op op, std::span<const std::byte* const> inputs,
                              std::size_t elements, std::byte* out) {
  invariant(inputs.size() == world_, "GR-4: every rank's values are reduced once");
  switch (type) {
  case element_type::float32:
    return evaluate_as<plain_codec<float>>(op, inputs, elements, out);
  case element_type::float64:
    return evaluate_as<plain_codec<double>>(op, inputs, elements, out);
  case element_type::float16:
    return evaluate_as<float16_codec>(op, inputs, elements, out);
  case element_type::bfloat16:
    return evaluate_as<bfloat16_codec>(op, inputs, elements, out);
  case element_type::int32:
    return evaluate_as<plain_codec<std::int32_t>>(op, inputs, elements, out);
  case element_type::int64:
    return evaluate_as<plain_codec<std::int64_t>>(op, inputs, elements, out);
  }
}

template <class Codec>
void rank_reduction::evaluate_as(reduce_op op, std::span<const std::byte* const> inputs, std::size_t elements,
                                 std::byte* out) {
  constexpr auto block_elements = block_bytes / sizeof(typename Codec::computed);
  for (std::size_t at = 0; at < elements; at += block_elements)
    evaluate_block<Codec>(op, inputs, at, std::min(block_elements, elements - at), out);
}

// A block goes through the whole tree while it is in the first-level cache. It is read from all inputs before
// it is written: `out` may be one of them.
template <class Codec>
void rank_reduction::evaluate_block(reduce_op op, std::span<const std::byte* const> inputs, std::size_t at,
                                    std::size_t count, std::byte* out) {
  using value = typename Codec::computed;
  const auto offset = at * sizeof(typename Codec::stored);
  std::size_t depth = 0;
  for (const auto& step : program_.steps) {
    if (step.what == combine_step::action::push) {
      load<Codec>(level<value>(depth++), inputs[step.rank] + offset, count);
    } else {
      --depth;
      combine(op, level<value>(depth - 1), level<value>(depth), count);
    }
  }
  if (op == reduce_op::avg) divide(level<value>(0), count, world_);
  store<Codec>(out + offset, level<value>(0), count);
}

} // namespace troupe
