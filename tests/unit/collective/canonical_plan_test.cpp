#include <algorithm>
#include <bit>
#include <cstdint>
#include <iterator>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include "runtime/policy/canonical_plan.hpp"
#include "runtime/policy/canonical_sum.hpp"
#include "tests/unit/collective/reference.hpp"

namespace troupe {
namespace {

using reference::buffer;
using reference::same_bits;
using reference::tree_sum;

constexpr std::uint32_t shards_tested = 33;

buffer local_sum(const std::vector<buffer>& shards, shard_interval node) {
  std::vector<buffer> buffers(local_buffers(node.count), buffer(shards[0].size()));
  for (const auto& step : local_sum_steps(node)) {
    if (step.what == local_step::action::compute)
      buffers.at(step.into) = shards[step.shard];
    else
      add_into(buffers.at(step.into), buffers.at(step.from));
  }
  return buffers[0];
}

std::vector<buffer> contributions_of_all(const std::vector<buffer>& shards, std::uint32_t world) {
  std::vector<buffer> contributions;
  for (std::uint32_t rank = 0; rank < world; ++rank) {
    const auto total = static_cast<std::uint32_t>(shards.size());
    const auto range = shard_range(total, world, rank);
    for (const auto& node : owned_nodes(total, range.first, range.count))
      contributions.push_back(local_sum(shards, node));
  }
  return contributions;
}

TEST_CASE("canonical plan: ranges tile the shards in rank order and differ by at most one (CP-1)") {
  for (std::uint32_t shards = 0; shards <= shards_tested; ++shards)
    for (std::uint32_t world = 1; world <= shards_tested + 2; ++world) {
      std::uint32_t next = 0;
      std::uint32_t previous = shards;
      for (std::uint32_t rank = 0; rank < world; ++rank) {
        const auto range = shard_range(shards, world, rank);
        REQUIRE(range.first == next);
        REQUIRE(range.count <= previous);
        REQUIRE(range.count - shards / world <= 1);
        next = range.end();
        previous = range.count;
      }
      REQUIRE(next == shards);
    }
}

TEST_CASE("canonical plan: a node splits after the largest power of two below its size") {
  CHECK(left_shards(2) == 1);
  CHECK(left_shards(3) == 2);
  CHECK(left_shards(4) == 2);
  CHECK(left_shards(5) == 4);
  CHECK(left_shards(8) == 4);
  CHECK(left_shards(9) == 8);
  CHECK(left_shards(33) == 32);
}

TEST_CASE("canonical plan: owned nodes tile any range and none could be larger (CP-2)") {
  for (std::uint32_t shards = 1; shards <= shards_tested; ++shards)
    for (std::uint32_t first = 0; first < shards; ++first)
      for (std::uint32_t count = 1; count <= shards - first; ++count) {
        std::uint32_t next = first;
        for (const auto& node : owned_nodes(shards, first, count)) {
          REQUIRE(node.first == next);
          // Walk down to the node; its parent must not fit in the range.
          shard_interval parent{0, shards};
          while (!(parent == node)) {
            REQUIRE_FALSE((first <= parent.first && parent.end() <= first + count));
            const auto left = left_shards(parent.count);
            if (node.first < parent.first + left)
              parent = {parent.first, left};
            else
              parent = {parent.first + left, parent.count - left};
          }
          next = node.end();
        }
        REQUIRE(next == first + count);
      }
}

TEST_CASE("canonical plan: the whole range is one node, and an empty range owns none (CP-2)") {
  CHECK(owned_nodes(8, 0, 8) == std::vector<shard_interval>{{0, 8}});
  CHECK(owned_nodes(8, 3, 0).empty());
  CHECK(owned_nodes(8, 0, 3) == std::vector<shard_interval>{{0, 2}, {2, 1}});
  CHECK(owned_nodes(8, 3, 3) == std::vector<shard_interval>{{3, 1}, {4, 2}});
  CHECK(owned_nodes(8, 6, 2) == std::vector<shard_interval>{{6, 2}});
}

TEST_CASE("canonical plan: local steps stay within floor(log2(n)) + 1 buffers (CP-4)") {
  for (std::uint32_t count = 1; count <= 4 * shards_tested; ++count) {
    std::uint32_t most = 0;
    std::uint32_t next = 5;
    const auto steps = local_sum_steps({5, count});
    REQUIRE(steps.size() == 2 * std::size_t{count} - 1);
    for (const auto& step : steps) {
      most = std::max(most, step.into);
      if (step.what == local_step::action::compute) REQUIRE(step.shard == next++);
    }
    REQUIRE(most + 1 == local_buffers(count));
    REQUIRE(local_buffers(count) <= std::bit_width(count));
  }
  CHECK(local_buffers(std::vector<shard_interval>{}) == 0);
  CHECK(local_buffers({{0, 2}, {2, 1}}) == 2);
}

TEST_CASE("canonical plan: every contribution is pushed once, in slot order (CP-3)") {
  for (std::uint32_t shards = 1; shards <= shards_tested; ++shards)
    for (std::uint32_t world = 1; world <= shards + 2; ++world) {
      const auto program = combine_program(shards, world);
      const auto first = first_slots(shards, world);
      std::uint32_t pushed = 0;
      std::uint32_t depth = 0;
      std::uint32_t deepest = 0;
      for (const auto& step : program.steps) {
        if (step.what == combine_step::action::push) {
          REQUIRE(first[step.rank] + step.index == pushed);
          ++pushed;
          deepest = std::max(deepest, ++depth);
        } else {
          REQUIRE(depth >= 2);
          --depth;
        }
      }
      REQUIRE(depth == 1);
      REQUIRE(pushed == first.back());
      REQUIRE(program.stack_depth == deepest);
      REQUIRE(program.steps.size() == 2 * std::size_t{pushed} - 1);
    }
}

TEST_CASE("canonical plan: where shards and ranks are powers of two, the program of a shard a rank (CP-3)") {
  for (std::uint32_t world = 1; world <= 64; world *= 2) {
    const auto plain = combine_program(world, world);
    for (std::uint32_t shards = world; shards <= 1024; shards *= 2) {
      REQUIRE(combine_program(shards, world).steps == plain.steps);
      REQUIRE(first_slots(shards, world) == first_slots(world, world));
    }
  }
}

TEST_CASE("canonical sum: every world gives the bits of one worker (CO-1, CP-3)") {
  constexpr std::size_t elements = 43;
  for (std::uint32_t shards = 1; shards <= shards_tested; ++shards) {
    const auto values = reference::shards_at(1, shards, elements);
    const auto reference = tree_sum(values, 0, shards);
    REQUIRE(same_bits(local_sum(values, {0, shards}), reference));
    for (std::uint32_t world = 1; world <= shards + 1; ++world) {
      const auto contributions = contributions_of_all(values, world);
      std::vector<const float*> slots;
      for (const auto& contribution : contributions)
        slots.push_back(contribution.data());
      canonical_sum sum{shards, world};
      REQUIRE(sum.slots() == slots.size());
      buffer result(elements, -1.0F);
      sum.evaluate(slots, 0, elements, result.data());
      REQUIRE(same_bits(result, reference));
    }
  }
}

TEST_CASE("canonical sum: ranks with any part of the shards give the sum of each of its nodes (CP-1, CP-3)") {
  constexpr std::size_t elements = 43;
  constexpr std::uint32_t shards = 11;
  const auto values = reference::shards_at(1, shards, elements);
  // Every way of choosing cuts: bit i says that one lies before shard i; the last ones lie after them.
  for (std::uint32_t chosen = 1; chosen < 1U << shards; ++chosen)
    for (std::uint32_t end = std::bit_width(chosen); end <= shards; ++end) {
      collective_shape shape{generation_id{1}, 0, shards, elements};
      for (std::uint32_t shard = 0; shard < shards; ++shard)
        if ((chosen >> shard & 1U) != 0) shape.cuts.push_back(shard);
      if (chosen % 3 == 0) shape.cuts.push_back(shape.cuts.back()); // a rank that holds nothing
      shape.cuts.push_back(end);
      shape.world = static_cast<std::uint32_t>(shape.cuts.size()) - 1;
      REQUIRE(cuts_fit(shape));
      std::vector<buffer> contributions;
      for (std::uint32_t rank = 0; rank < shape.world; ++rank)
        std::ranges::move(reference::contributions_of(shape, rank, values),
                          std::back_inserter(contributions));
      std::vector<const float*> slots;
      for (const auto& contribution : contributions)
        slots.push_back(contribution.data());
      canonical_sum sum{shape};
      REQUIRE(sum.slots() == slots.size());
      const auto right = reference::sums_of(shape, values);
      REQUIRE(sum.sums() == right.size());
      buffer result(elements * right.size(), -1.0F);
      sum.evaluate(slots, 0, elements, result.data(), store_kind::cached, 0, elements);
      for (std::size_t i = 0; i < right.size(); ++i)
        REQUIRE(same_bits(std::span{result}.subspan(i * elements, elements), right[i]));
    }
  CHECK(even_cuts(8, 3).at == std::vector<std::uint32_t>{0, 3, 6, 8});
}

TEST_CASE("canonical sum: any cut into pieces, cached or streamed, gives the same bits (CS-1)") {
  constexpr std::size_t elements = 10'007;
  const auto values = reference::shards_at(1, 8, elements);
  const auto reference = tree_sum(values, 0, 8);
  for (const std::uint32_t world : {2U, 3U, 5U, 8U}) {
    const auto contributions = contributions_of_all(values, world);
    std::vector<const float*> slots;
    for (const auto& contribution : contributions)
      slots.push_back(contribution.data());
    canonical_sum sum{8, world};
    for (const std::size_t piece : {1U, 16U, 1024U, 4111U, 20'000U}) {
      buffer result(elements, -1.0F);
      for (std::size_t begin = 0; begin < elements; begin += piece)
        sum.evaluate(slots, begin, std::min(elements, begin + piece), result.data());
      REQUIRE(same_bits(result, reference));
    }
    struct alignas(64) line {
      float values[16];
    };
    std::vector<line> aligned(elements / 16 + 1);
    auto* result = aligned[0].values;
    sum.evaluate(slots, 0, 4096, result, store_kind::streamed);
    sum.evaluate(slots, 4096, elements, result, store_kind::streamed);
    REQUIRE(same_bits(buffer(result, result + elements), reference));
  }
}

} // namespace
} // namespace troupe
