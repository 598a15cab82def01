// The canonical sum as plainly as it can be written, and shard values whose sum shows any other order.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "runtime/base/counter_rng.hpp"
#include "runtime/policy/canonical_plan.hpp"
#include "runtime/policy/canonical_sum.hpp"
#include "runtime/seams/collective.hpp"

namespace troupe::reference {

using buffer = std::vector<float>;

// Values of very different size, so that another order of additions gives other bits.
inline void fill_shard(std::uint64_t step, std::uint32_t shard, std::span<float> into) {
  const counter_rng random{step, shard};
  for (std::size_t i = 0; i < into.size(); ++i) {
    const auto words = random.block(i);
    const auto mantissa = static_cast<float>(words[0] >> 8) * 0x1.0p-23F - 1.0F;
    into[i] = std::ldexp(mantissa, static_cast<int>(words[1] % 25) - 12);
  }
}

inline buffer tree_sum(const std::vector<buffer>& shards, std::uint32_t first, std::uint32_t count) {
  if (count == 1) return shards[first];
  std::uint32_t left = 1;
  while (left * 2 < count)
    left *= 2;
  auto sum = tree_sum(shards, first, left);
  const auto right = tree_sum(shards, first + left, count - left);
  for (std::size_t i = 0; i < sum.size(); ++i)
    sum[i] = sum[i] + right[i];
  return sum;
}

// The same with the value of every node rounded.
inline buffer rounded_sum(const std::vector<buffer>& shards, std::uint32_t first, std::uint32_t count,
                          const wire_format& format) {
  if (count == 1) {
    auto leaf = shards[first];
    format.round(leaf, 0);
    return leaf;
  }
  const auto left = left_shards(count);
  auto sum = rounded_sum(shards, first, left, format);
  const auto right = rounded_sum(shards, first + left, count - left, format);
  for (std::size_t i = 0; i < sum.size(); ++i)
    sum[i] = sum[i] + right[i];
  format.round(sum, 0);
  return sum;
}

inline std::vector<buffer> shards_at(std::uint64_t step, std::uint32_t shards, std::size_t elements) {
  std::vector<buffer> values(shards, buffer(elements));
  for (std::uint32_t shard = 0; shard < shards; ++shard)
    fill_shard(step, shard, values[shard]);
  return values;
}

inline buffer sum_at(std::uint64_t step, std::uint32_t shards, std::size_t elements) {
  return tree_sum(shards_at(step, shards, elements), 0, shards);
}

// Does what a step engine does: adds up this rank's shards into its contributions.
inline void contribute(communicator& member, const collective_shape& shape, std::uint32_t rank,
                       const std::vector<buffer>& shards) {
  const auto range = shard_range(shape.shards, shape.world, rank);
  const auto nodes = owned_nodes(shape.shards, range.first, range.count);
  std::vector<buffer> scratch(local_buffers(nodes), buffer(shape.elements));
  for (std::size_t index = 0; index < nodes.size(); ++index) {
    const auto contribution = member.contribution(index);
    const auto at = [&](std::uint32_t number) {
      return number == 0 ? contribution : std::span<float>{scratch[number]};
    };
    for (const auto& action : local_sum_steps(nodes[index])) {
      if (action.what == local_step::action::compute)
        std::copy(shards[action.shard].begin(), shards[action.shard].end(), at(action.into).begin());
      else
        add_into(at(action.into), at(action.from));
    }
  }
}

// Every contribution of a rank, as `contribute` writes it.
inline std::vector<buffer> contributions_of(const collective_shape& shape, std::uint32_t rank,
                                            const std::vector<buffer>& shards) {
  const auto range = cuts_of(shape).of(rank);
  std::vector<buffer> all;
  for (const auto& node : owned_nodes(shape.shards, range.first, range.count))
    all.push_back(rounded_sum(shards, node.first, node.count, wire_format{shape}));
  return all;
}

// The sums of what the ranks hold: one, or that of each maximal node.
inline std::vector<buffer> sums_of(const collective_shape& shape, const std::vector<buffer>& shards) {
  const auto held = cuts_of(shape).all();
  std::vector<buffer> all;
  for (const auto& node : owned_nodes(shape.shards, held.first, held.count))
    all.push_back(rounded_sum(shards, node.first, node.count, wire_format{shape}));
  return all;
}

// Where a sum of `elements` is cut into parts, from the end down; drawn from `seed`. The last part is left.
inline std::vector<element_range> parts_at(std::uint64_t seed, std::size_t elements) {
  const counter_rng random{seed, 77};
  std::vector<element_range> parts;
  auto end = elements - random.block(0)[0] % (elements / 4 + 1);
  for (std::uint64_t i = 1; end > 1 && parts.size() < 5; ++i) {
    const auto begin = end - 1 - random.block(i)[0] % (end - 1);
    parts.push_back({begin, end});
    end = begin;
  }
  return parts;
}

// Leaves `kept` of a shard's gradient, spread over all of it, and what follows it.
inline void thin_out(buffer& shard, const collective_shape& shape, std::uint64_t seed) {
  const auto distance = shape.wire_elements / shape.kept;
  for (std::size_t i = 0; i < shape.wire_elements; ++i)
    if (i / distance >= shape.kept || i % distance != seed * 7 % distance) shard[i] = 0;
}

// The shard values and sums of a few steps, to be used in turn.
struct steps {
  std::vector<std::vector<buffer>> shards;
  std::vector<buffer> sums;

  steps(std::size_t count, const collective_shape& shape) {
    for (std::size_t step = 0; step < count; ++step) {
      shards.push_back(shards_at(step, shape.shards, shape.elements));
      for (std::uint32_t shard = 0; shape.kept > 0 && shard < shape.shards; ++shard)
        thin_out(shards.back()[shard], shape, step + shard);
      sums.push_back(rounded_sum(shards.back(), 0, shape.shards, wire_format{shape}));
    }
  }
  [[nodiscard]] std::size_t count() const { return shards.size(); }
};

inline bool same_bits(std::span<const float> a, std::span<const float> b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i)
    if (std::bit_cast<std::uint32_t>(a[i]) != std::bit_cast<std::uint32_t>(b[i])) return false;
  return true;
}

} // namespace troupe::reference
