// The kernel module's functions on memory of the host: plain code, for the fakes and as what GPUs are
// compared with. Sums are postfix programs; reductions and updates are the functions that the CPU's own use.
#pragma once

#include <cstring>
#include <vector>

#include "runtime/policy/reduce_rules.hpp"
#include "runtime/train/update_rules.hpp"
#include "transports/nccl/kernel_api.hpp"

namespace troupe::kernels::plain {

inline void sum(const sum_arguments& what) {
  std::vector<float> stack;
  for (std::size_t i = 0; i < what.elements; ++i) {
    stack.clear();
    for (std::uint32_t step = 0; step < what.steps; ++step) {
      if (what.program[step] != add) {
        stack.push_back(what.slots[what.program[step]][i]);
        continue;
      }
      const float right = stack.back();
      stack.pop_back();
      stack.back() = stack.back() + right;
    }
    what.result[i] = stack.back();
  }
}

template <class Codec>
void reduce_as(const reduce_arguments& what) {
  using stored = typename Codec::stored;
  for (std::size_t i = 0; i < what.elements; ++i) {
    const auto value_of = [&](std::uint32_t rank) {
      stored value;
      std::memcpy(&value, what.inputs + rank * what.stride + i * sizeof value, sizeof value);
      return Codec::load(value);
    };
    const stored made =
        Codec::store(reduce_rules::reduced<typename Codec::computed>(what.op, what.world, value_of));
    std::memcpy(what.result + i * sizeof made, &made, sizeof made);
  }
}

inline void reduce(const reduce_arguments& what) {
  using namespace reduce_rules;
  switch (what.type) {
  case element_type::float32:
    return reduce_as<plain_codec<float>>(what);
  case element_type::float64:
    return reduce_as<plain_codec<double>>(what);
  case element_type::float16:
    return reduce_as<float16_codec>(what);
  case element_type::bfloat16:
    return reduce_as<bfloat16_codec>(what);
  case element_type::int32:
    return reduce_as<plain_codec<std::int32_t>>(what);
  case element_type::int64:
    return reduce_as<plain_codec<std::int64_t>>(what);
  }
}

inline void pack(const pack_arguments& what) {
  for (std::uint32_t i = 0; i < what.count; ++i) {
    const auto& one = what.segments[i];
    std::memcpy(what.into + one.into, one.from, one.elements * sizeof(float));
  }
}

inline void sgd(const sgd_arguments& what) {
  const sgd_rule rule{what.scale, what.rate, what.momentum, what.weight_decay};
  for (std::size_t i = 0; i < what.elements; ++i)
    if (what.momentum_slot == nullptr)
      rule.plain(what.parameters[i], what.gradient[i]);
    else if (what.nesterov != 0)
      rule.with_momentum<true>(what.parameters[i], what.momentum_slot[i], what.gradient[i]);
    else
      rule.with_momentum<false>(what.parameters[i], what.momentum_slot[i], what.gradient[i]);
}

inline void adamw(const adamw_arguments& what) {
  const adamw_rule rule{what.scale, what.beta1, what.beta2, what.epsilon, what.keep, what.rate, what.root2};
  for (std::size_t i = 0; i < what.elements; ++i)
    rule.apply(what.parameters[i], what.mean[i], what.variance[i], what.gradient[i]);
}

} // namespace troupe::kernels::plain
