// Contribution: what one tree node of a step puts into the collective.
//
// Layout, float32: the gradient as the arena's parameters lie [part_elements], then a tail of 16 elements:
// loss (high, low part of a double), number of samples, and a tag of the step, counted once a shard. All are
// summed along the same tree as the gradient, so the loss is canonical too, and the sum can be checked: it
// holds exactly the global batch, of one step.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>

#include "runtime/base/invariant.hpp"

namespace troupe {

inline constexpr std::size_t contribution_tail_elements = 16; // keeps the whole a multiple of 64 bytes

struct contribution_tail {
  double loss_sum{0};
  std::uint64_t samples{0};
  std::uint64_t tags{0};
};

[[nodiscard]] constexpr std::size_t contribution_elements(std::size_t part_elements) {
  return part_elements + contribution_tail_elements;
}

// Of one shard at global batch number `number`. Below 4096, and at most 4096 shards are summed: exact.
[[nodiscard]] constexpr std::uint64_t batch_tag(std::uint64_t number) {
  return number % 4096;
}

inline void write_tail(std::span<float> contribution, const contribution_tail& tail) {
  const auto elements = contribution.last(contribution_tail_elements);
  const auto high = static_cast<float>(tail.loss_sum);
  elements[0] = high;
  elements[1] = static_cast<float>(tail.loss_sum - double{high});
  elements[2] = static_cast<float>(tail.samples);
  elements[3] = static_cast<float>(tail.tags);
}

[[nodiscard]] inline contribution_tail read_tail(std::span<const float> sum) {
  const auto elements = sum.last(contribution_tail_elements);
  const auto count = [](float value) {
    return value >= 0 && value < 0x1p25F ? static_cast<std::uint64_t>(value) : ~std::uint64_t{0};
  };
  return {double{elements[0]} + double{elements[1]}, count(elements[2]), count(elements[3])};
}

} // namespace troupe
