#include "runtime/policy/canonical_plan.hpp"

#include <algorithm>
#include <bit>
#include <utility>

#include "runtime/base/invariant.hpp"

namespace troupe {

namespace {

// Walks down from `node`, collecting every node that lies inside `range` and whose parent does not.
void collect_owned(shard_interval node, shard_interval range, std::vector<shard_interval>& owned) {
  if (node.end() <= range.first || range.end() <= node.first) return;
  if (range.first <= node.first && node.end() <= range.end()) {
    owned.push_back(node);
    return;
  }
  const auto left = left_shards(node.count);
  collect_owned({node.first, left}, range, owned);
  collect_owned({node.first + left, node.count - left}, range, owned);
}

void append_local(shard_interval node, std::uint32_t into, std::vector<local_step>& steps) {
  if (node.count == 1) {
    steps.push_back({local_step::action::compute, node.first, into, 0});
    return;
  }
  const auto left = left_shards(node.count);
  append_local({node.first, left}, into, steps);
  append_local({node.first + left, node.count - left}, into + 1, steps);
  steps.push_back({local_step::action::add, 0, into, into + 1});
}

// Contributions are met in rank order and, inside a rank, in index order: a cursor names the next one.
struct combine_writer {
  const shard_cuts& cuts;
  std::uint32_t rank{0};
  std::uint32_t index{0};
  std::uint32_t depth{0};
  postfix_program program{};

  void append(shard_interval node) {
    while (node.first >= cuts.of(rank).end()) {
      ++rank;
      index = 0;
    }
    if (node.end() <= cuts.of(rank).end()) {
      program.steps.push_back({combine_step::action::push, rank, index++});
      program.stack_depth = std::max(program.stack_depth, ++depth);
      return;
    }
    const auto left = left_shards(node.count);
    append({node.first, left});
    append({node.first + left, node.count - left});
    program.steps.push_back({combine_step::action::add, 0, 0});
    --depth;
  }
};

} // namespace

shard_interval shard_range(std::uint32_t shards, std::uint32_t world, std::uint32_t rank) {
  invariant(rank < world, "CP-1: a range belongs to a rank of the world");
  const auto share = shards / world;
  const auto larger = shards % world; // this many ranks compute one shard more
  return {rank * share + std::min(rank, larger), share + (rank < larger ? 1U : 0U)};
}

shard_cuts even_cuts(std::uint32_t shards, std::uint32_t world) {
  shard_cuts cuts{shards, {0}};
  cuts.at.reserve(world + std::size_t{1});
  for (std::uint32_t rank = 0; rank < world; ++rank)
    cuts.at.push_back(shard_range(shards, world, rank).end());
  return cuts;
}

shard_cuts cuts_of(const collective_shape& shape) {
  invariant(cuts_fit(shape), "CP-1: ranges of cuts follow one another inside the shards");
  return shape.cuts.empty() ? even_cuts(shape.shards, shape.world) : shard_cuts{shape.shards, shape.cuts};
}

bool cuts_fit(const collective_shape& shape) {
  const auto& at = shape.cuts;
  return at.empty() || (at.size() == shape.world + std::size_t{1} && std::ranges::is_sorted(at) &&
                        at.front() < at.back() && at.back() <= shape.shards);
}

std::uint32_t left_shards(std::uint32_t count) {
  invariant(count > 1, "CP-2: only a node of several shards splits");
  return std::bit_floor(count - 1);
}

std::vector<shard_interval> owned_nodes(std::uint32_t shards, std::uint32_t first, std::uint32_t count) {
  invariant(first <= shards && count <= shards - first, "CP-1: a range lies inside the shards");
  std::vector<shard_interval> owned;
  if (count > 0) collect_owned({0, shards}, {first, count}, owned);
  return owned;
}

std::vector<local_step> local_sum_steps(shard_interval node) {
  invariant(node.count > 0, "CP-2: a node owns at least one shard");
  std::vector<local_step> steps;
  steps.reserve(2 * std::size_t{node.count} - 1);
  append_local(node, 0, steps);
  return steps;
}

std::uint32_t local_buffers(std::uint32_t count) {
  // A left child of 2^k shards needs k + 1; a smaller right child at most k, and one more for the left sum.
  return static_cast<std::uint32_t>(std::bit_width(count));
}

std::uint32_t local_buffers(const std::vector<shard_interval>& nodes) {
  std::uint32_t most = 0;
  for (const auto& node : nodes)
    most = std::max(most, local_buffers(node.count));
  return most;
}

postfix_program combine_program(std::uint32_t shards, std::uint32_t world) {
  invariant(shards > 0 && world > 0, "CP-3: a tree has shards and ranks");
  return std::move(combine_programs(even_cuts(shards, world)).front());
}

std::vector<postfix_program> combine_programs(const shard_cuts& cuts) {
  combine_writer writer{cuts};
  std::vector<postfix_program> programs;
  for (const auto& node : owned_nodes(cuts.shards, cuts.all().first, cuts.all().count)) {
    writer.append(node);
    programs.push_back(std::exchange(writer.program, {}));
    writer.depth = 0;
  }
  return programs;
}

std::vector<std::uint32_t> first_slots(const shard_cuts& cuts) {
  std::vector<std::uint32_t> first{0};
  first.reserve(cuts.at.size());
  for (std::uint32_t rank = 0; rank < cuts.world(); ++rank) {
    const auto owned = owned_nodes(cuts.shards, cuts.of(rank).first, cuts.of(rank).count);
    first.push_back(first.back() + static_cast<std::uint32_t>(owned.size()));
  }
  return first;
}

std::vector<std::uint32_t> first_slots(std::uint32_t shards, std::uint32_t world) {
  return first_slots(even_cuts(shards, world));
}

} // namespace troupe
