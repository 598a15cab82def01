// Canonical plan: who owns which logical shards, and in which order their gradients are added.
//
// The global batch is cut into S logical shards. Their values are summed along one fixed binary tree over
// [0, S): a node of n > 1 shards splits after the largest power of two below n, and its sum is
// left + right, in that order. A rank adds up what it owns whole; the collective adds the rest. The tree
// depends on S alone, so the bits of the sum do not depend on the number of ranks.
//
// Ranks that are a part of a world, or hosts of one, have other ranges than a world of as many: `shard_cuts`.
// They may hold a part of the shards only; then there is a sum for each maximal node of that part.
//
// Flow:     (shards, world) -> ranges, owned nodes -> local steps (step engine), combine steps (collective)
// Runs on:  anywhere: pure functions. They allocate, so plans are made once a generation, not once a step.
// Invariants:
//   CP-1    ranges cover [0, S) without gap or overlap, in rank order, and differ by at most one shard; those
//           of cuts cover what they hold.
//   CP-2    owned nodes are nodes of the tree, tile the rank's range in order, and none could be larger.
//   CP-3    local steps and combine steps together perform exactly the additions of the tree, or of its
//           nodes that are held whole.
//   CP-4    local steps of n shards use at most floor(log2(n)) + 1 buffers.
// Why:      docs/design/0002-canonical-reduction.md
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "runtime/seams/collective.hpp"

namespace troupe {

// Shards [first, first + count).
struct shard_interval {
  std::uint32_t first{0};
  std::uint32_t count{0};
  [[nodiscard]] constexpr std::uint32_t end() const { return first + count; }
  constexpr bool operator==(const shard_interval&) const = default;
};

// The part of [0, shards) that `rank` computes; lower ranks get the larger share (CP-1). With more ranks
// than shards the last ranks own nothing.
[[nodiscard]] shard_interval shard_range(std::uint32_t shards, std::uint32_t world, std::uint32_t rank);

// Of `shards` rank r holds [at[r], at[r + 1]). Some may hold none, not all.
struct shard_cuts {
  std::uint32_t shards{1};
  std::vector<std::uint32_t> at; // ascending
  [[nodiscard]] std::uint32_t world() const { return static_cast<std::uint32_t>(at.size()) - 1; }
  [[nodiscard]] shard_interval of(std::uint32_t rank) const { return {at[rank], at[rank + 1] - at[rank]}; }
  [[nodiscard]] shard_interval all() const { return {at.front(), at.back() - at.front()}; }
};
// Those of CP-1.
[[nodiscard]] shard_cuts even_cuts(std::uint32_t shards, std::uint32_t world);
// Those of a shape; requires `cuts_fit`.
[[nodiscard]] shard_cuts cuts_of(const collective_shape& shape);
// The shape asks for none, or for ones that it can have.
[[nodiscard]] bool cuts_fit(const collective_shape& shape);

// Shards in the left child of a node of `count` > 1 shards.
[[nodiscard]] std::uint32_t left_shards(std::uint32_t count);

// The maximal tree nodes inside [first, first + count), in order (CP-2): one contribution each.
[[nodiscard]] std::vector<shard_interval> owned_nodes(std::uint32_t shards, std::uint32_t first,
                                                      std::uint32_t count);

// Adding up the shards of one owned node. Buffer 0 is the node's contribution memory; buffers 1, 2, ... are
// the caller's scratch, each as large.
struct local_step {
  enum class action : std::uint8_t {
    compute, // compute shard `shard` into buffer `into`, overwriting it
    add,     // buffer `into` = buffer `into` + buffer `from`, element by element
  };
  action what{action::compute};
  std::uint32_t shard{0};
  std::uint32_t into{0};
  std::uint32_t from{0};
  bool operator==(const local_step&) const = default;
};

// Shards are computed in increasing order. Complexity: 2 n - 1 steps for n shards.
[[nodiscard]] std::vector<local_step> local_sum_steps(shard_interval node);
// Buffers that the steps of a node of `count` shards use, buffer 0 included (CP-4).
[[nodiscard]] std::uint32_t local_buffers(std::uint32_t count);
// The most that any owned node of this rank needs; 0 for a rank without shards.
[[nodiscard]] std::uint32_t local_buffers(const std::vector<shard_interval>& nodes);

// Evaluating a node of the tree from all ranks' contributions, as a postfix program over a stack.
struct combine_step {
  enum class action : std::uint8_t {
    push, // push the contribution `index` of `rank`
    add,  // pop right, pop left, push left + right
  };
  action what{action::push};
  std::uint32_t rank{0};
  std::uint32_t index{0};
  bool operator==(const combine_step&) const = default;
};

struct postfix_program {
  std::vector<combine_step> steps;
  std::uint32_t stack_depth{0};
};

// Every contribution is pushed exactly once; one value is left. Requires shards > 0 and world > 0.
[[nodiscard]] postfix_program combine_program(std::uint32_t shards, std::uint32_t world);
// One for each maximal node of what the ranks hold, in order; together they push every contribution once.
[[nodiscard]] std::vector<postfix_program> combine_programs(const shard_cuts& cuts);

// Contributions of all ranks, numbered through: those of `rank` start at `first_slots(...)[rank]`; the last
// element is their total.
[[nodiscard]] std::vector<std::uint32_t> first_slots(const shard_cuts& cuts);
[[nodiscard]] std::vector<std::uint32_t> first_slots(std::uint32_t shards, std::uint32_t world);

} // namespace troupe
