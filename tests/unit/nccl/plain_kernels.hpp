// The kernel module's functions on memory of the host: plain code, for the fakes and as what GPUs are compared
// with. Sums are postfix programs; updates are the functions that the CPU's optimizers use.
#pragma once

#include <cstring>
#include <vector>

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

inline void pack(const pack_arguments& what) {
  for (std::uint32_t i = 0; i < what.count; ++i) {
    const auto& one = what.segments[i];
    std::memcpy(what.into + one.into, one.from, one.elements * sizeof(float));
  }
}

} // namespace troupe::kernels::plain
