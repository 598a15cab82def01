// Where two levels are the canonical sum, and where they are not.
#include "transports/two_level/level_plan.hpp"

#include <numeric>

#include <catch2/catch_test_macros.hpp>

#include "tests/unit/collective/reference.hpp"

namespace troupe {
namespace {

using hosts = std::vector<std::uint32_t>;

// A sum written out: "((0+1)+2)".
std::string written(std::uint32_t first, std::uint32_t count) {
  if (count == 1) return std::to_string(first);
  const auto left = left_shards(count);
  return "(" + written(first, left) + "+" + written(first + left, count - left) + ")";
}

// What `program` does with `inputs`, a list a rank.
std::string performed(const postfix_program& program, const std::vector<std::vector<std::string>>& inputs) {
  std::vector<std::string> stack;
  for (const auto& step : program.steps) {
    if (step.what == combine_step::action::push) {
      stack.push_back(inputs[step.rank][step.index]);
      continue;
    }
    const auto right = stack.back();
    stack.pop_back();
    stack.back() = "(" + stack.back() + "+" + right + ")";
  }
  return stack.back();
}

// Every rank adds up the nodes that it owns in the whole, every host those of its ranks, as the inside does.
std::string performed(const level_plan& plan, std::uint32_t shards, std::uint32_t world) {
  std::vector<std::vector<std::string>> sums;
  for (const auto& host : plan.hosts) {
    std::vector<std::vector<std::string>> contributions;
    for (std::uint32_t i = 0; i < host.ranks; ++i) {
      const auto range = shard_range(shards, world, host.first + i);
      const auto share = shard_range(host.node.count, host.ranks, i);
      CHECK(share == shard_interval{range.first - host.node.first, range.count}); // LP-2
      contributions.emplace_back();
      for (const auto& node : owned_nodes(host.node.count, share.first, share.count))
        contributions.back().push_back(written(host.node.first + node.first, node.count));
    }
    sums.push_back({performed(combine_program(host.node.count, host.ranks), contributions)});
  }
  return performed(combine_program(plan.shards_between, static_cast<std::uint32_t>(plan.hosts.size())), sums);
}

TEST_CASE("level plan: where there is one, both levels together perform the tree's additions (LP-1, LP-2)") {
  std::size_t planned = 0;
  std::size_t refused = 0;
  // Every way of putting up to 9 ranks on hosts, in order: bit i says that rank i + 1 is on another one.
  for (std::uint32_t world = 1; world <= 9; ++world)
    for (std::uint32_t cuts = 0; cuts < 1U << (world - 1); ++cuts)
      for (std::uint32_t shards = 1; shards <= 24; ++shards) {
        hosts ranks{1};
        for (std::uint32_t rank = 1; rank < world; ++rank)
          if ((cuts >> (rank - 1) & 1U) != 0)
            ranks.push_back(1);
          else
            ++ranks.back();
        const auto plan = level_plan::make(shards, ranks);
        if (!plan) {
          ++refused;
          continue;
        }
        CAPTURE(shards, ranks);
        ++planned;
        REQUIRE(performed(*plan, shards, world) == written(0, shards));
      }
  CHECK(planned > 500);
  CHECK(refused > 500);
}

TEST_CASE("level plan: it is refused where a host's ranks own no node, and found where all do (LP-1)") {
  const auto fits = [](std::uint32_t shards, const hosts& ranks) {
    return level_plan::make(shards, ranks).has_value();
  };
  CHECK(fits(8, {2, 2}));
  CHECK(fits(8, {4, 4}));
  CHECK(fits(8, {2, 1, 1}));
  CHECK(fits(8, {2, 2, 2})); // shares of 2, 2, 1, 1, 1, 1
  CHECK(fits(7, {2, 2}));
  CHECK(fits(3, {2, 1}));
  CHECK(fits(96, {8, 8, 8}));
  CHECK_FALSE(fits(8, {2, 1}));    // shares of 3, 3, 2
  CHECK_FALSE(fits(8, {1, 2, 1})); // a node begins where its size allows
  CHECK_FALSE(fits(8, {3, 1}));
  CHECK_FALSE(fits(2, {2, 2})); // a host without shards
  CHECK_FALSE(fits(8, {}));
  CHECK_FALSE(fits(8, {2, 0, 2}));
}

TEST_CASE("level plan: hosts are those of the members, one after the other; rank groups have no levels") {
  collective_shape shape{generation_id{1}, 4, 8, 100};
  const auto on = [&](const hosts& of_ranks) {
    shape.members.clear();
    for (std::uint64_t rank = 0; rank < 4; ++rank)
      shape.members.push_back({incarnation_id{1, rank + 1}, {}, of_ranks[rank]});
    return level_plan::make(shape);
  };
  CHECK(on({0, 0, 1, 1}));
  CHECK(on({5, 5, 3, 2}));
  CHECK_FALSE(on({0, 1, 0, 1}));
  CHECK(on({3, 3, 3, 3}));
  CHECK_FALSE(on({0, 1, 2, 3})); // nothing is shared
  const auto plan = on({0, 0, 1, 1}).value();
  CHECK(plan.between(shape).members[1].incarnation == incarnation_id{1, 3});
  CHECK(plan.between(shape).world == 2);
  CHECK(plan.inside(shape, 1).shards == 4);
  CHECK(plan.host_of(1) == 0);
  CHECK(plan.host_of(2) == 1);
  shape.group_bytes = 4096;
  CHECK_FALSE(level_plan::make(shape));
}

TEST_CASE("level plan: hosts as text") {
  const auto again = [](const hosts& ranks) {
    std::vector<level_plan::host> all;
    for (const auto each : ranks)
      all.push_back({0, each, {}});
    const auto text = to_text(all);
    CHECK(parse_hosts(text, std::accumulate(ranks.begin(), ranks.end(), 0U)) == ranks);
    return text;
  };
  CHECK(again({2, 2, 1}) == "2*2,1");
  CHECK(again({4}) == "4");
  CHECK(again(hosts(512, 2)) == "2*512");
  for (const auto* wrong : {"", "2", "2*", "2,x", "0,4", "2*3", "2*0,4", "-2", "4294967295*4294967295"})
    CHECK_FALSE(parse_hosts(wrong, 4));
}

} // namespace
} // namespace troupe
