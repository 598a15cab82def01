// That two levels are the canonical sum, wherever ranks are.
#include "transports/two_level/level_plan.hpp"

#include <numeric>

#include <catch2/catch_test_macros.hpp>

#include "runtime/base/limits.hpp"
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

// Nodes of [first, first + count), written out: what somebody contributes who adds them up whole.
std::vector<std::string> nodes_of(std::uint32_t shards, std::uint32_t first, std::uint32_t count) {
  std::vector<std::string> all;
  for (const auto& node : owned_nodes(shards, first, count))
    all.push_back(written(node.first, node.count));
  return all;
}

// Every rank adds up the nodes that it owns in the whole, every host those of its ranks, as the inside does.
std::string performed(const level_plan& plan, const collective_shape& shape) {
  std::vector<std::vector<std::string>> sums;
  for (std::uint32_t number = 0; number < plan.hosts.size(); ++number) {
    const auto& host = plan.hosts[number];
    const auto inside = cuts_of(plan.inside(shape, number));
    std::vector<std::vector<std::string>> contributions;
    for (std::uint32_t i = 0; i < host.ranks; ++i) {
      const auto range = shard_range(shape.shards, shape.world, host.first + i);
      CHECK(inside.of(i) == range); // LP-2
      contributions.push_back(nodes_of(shape.shards, range.first, range.count));
    }
    sums.emplace_back();
    for (const auto& program : combine_programs(inside))
      sums.back().push_back(performed(program, contributions));
    CHECK(sums.back() == nodes_of(shape.shards, inside.all().first, inside.all().count));
    CHECK(sums.back().size() == host.nodes);
  }
  const auto above = combine_programs(cuts_of(plan.between(shape)));
  REQUIRE(above.size() == 1);
  return performed(above.front(), sums);
}

constexpr std::size_t elements = 16;

// The sums of `shape`, one after the other, of what its ranks contribute.
reference::buffer sums_of(const collective_shape& shape,
                          const std::vector<reference::buffer>& contributions) {
  std::vector<const float*> slots;
  for (const auto& each : contributions)
    slots.push_back(each.data());
  canonical_sum sum{shape};
  reference::buffer made(sum.sums() * elements);
  sum.evaluate(slots, 0, elements, made.data(), store_kind::cached, 0, elements);
  return made;
}

void contribute(std::vector<reference::buffer>& to, const collective_shape& shape, std::uint32_t rank,
                const std::vector<reference::buffer>& values) {
  for (auto& each : reference::contributions_of(shape, rank, values))
    to.push_back(std::move(each));
}

// Flat, and in two levels.
reference::buffer canonical(const collective_shape& shape, const std::vector<reference::buffer>& values) {
  std::vector<reference::buffer> contributions;
  for (std::uint32_t rank = 0; rank < shape.world; ++rank)
    contribute(contributions, shape, rank, values);
  return sums_of(shape, contributions);
}
reference::buffer summed(const level_plan& plan, const collective_shape& shape,
                         const std::vector<reference::buffer>& values) {
  std::vector<reference::buffer> nodes;
  for (std::uint32_t number = 0; number < plan.hosts.size(); ++number) {
    const auto& host = plan.hosts[number];
    std::vector<reference::buffer> contributions;
    for (std::uint32_t i = 0; i < host.ranks; ++i)
      contribute(contributions, shape, host.first + i, values);
    const auto sums = sums_of(plan.inside(shape, number), contributions);
    for (auto at = sums.begin(); at != sums.end(); at += elements)
      nodes.emplace_back(at, at + elements);
  }
  return sums_of(plan.between(shape), nodes);
}

TEST_CASE("level plan: both levels together perform the tree's additions, wherever ranks are (LP-1, LP-2)") {
  const auto values = reference::shards_at(1, 24, elements);
  std::size_t planned = 0;
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
        CAPTURE(shards, ranks);
        REQUIRE(plan.has_value() == (shards > world - ranks.back())); // the last host has shards, so all have
        if (!plan) continue;
        ++planned;
        collective_shape shape{generation_id{1}, world, shards, elements};
        shape.members.resize(world);
        REQUIRE(performed(*plan, shape) == written(0, shards));
        REQUIRE(reference::same_bits(summed(*plan, shape, values), canonical(shape, values)));
        shape.wire = element_type::bfloat16;
        shape.wire_elements = elements;
        REQUIRE(reference::same_bits(summed(*plan, shape, values), canonical(shape, values)));
      }
  CHECK(planned == 9180); // of 12,264
}

TEST_CASE("level plan: hosts own one node or several, and none without shards (LP-1)") {
  const auto nodes = [](std::uint32_t shards, const hosts& ranks) {
    hosts all;
    if (const auto plan = level_plan::make(shards, ranks))
      for (const auto& each : plan->hosts)
        all.push_back(each.nodes);
    return all;
  };
  CHECK(nodes(8, {2, 2}) == hosts{1, 1});
  CHECK(nodes(8, {2, 1, 1}) == hosts{1, 1, 1});
  CHECK(nodes(8, {2, 2, 2}) == hosts{1, 1, 1}); // shares of 2, 2, 1, 1, 1, 1
  CHECK(nodes(7, {2, 2}) == hosts{1, 1});
  CHECK(nodes(96, {8, 8, 8}) == hosts{1, 1, 1});
  CHECK(nodes(8, {2, 1}) == hosts{2, 1}); // shares of 3, 3, 2
  CHECK(nodes(8, {3, 1}) == hosts{2, 1});
  CHECK(nodes(8, {1, 2, 1}) == hosts{1, 2, 1}); // a node begins where its size allows
  CHECK(nodes(8, {1, 2}) == hosts{2, 2});
  CHECK(nodes(21, {3, 4}) == hosts{2, 4});
  const auto why = [](std::uint32_t shards, const hosts& ranks) {
    return level_plan::make(shards, ranks).failure().text;
  };
  CHECK(why(2, {2, 2}) == "the workers of one host (ranks 2..3) hold no shards");
  CHECK(why(8, {}) == "a world of 0 is not in 1.." + std::to_string(limits::workers_max));
  CHECK(why(8, {2, 0, 2}) == "a host has no worker");
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
  CHECK(plan.between(shape).cuts == std::vector<std::uint32_t>{0, 4, 8});
  CHECK(plan.inside(shape, 1).world == 2);
  CHECK(plan.inside(shape, 1).cuts == std::vector<std::uint32_t>{4, 6, 8});
  CHECK(plan.host_of(1) == 0);
  CHECK(plan.host_of(2) == 1);
  CHECK(on({0, 0, 0, 1}));
  CHECK(on({0, 1, 2, 3}).failure().text == "no two workers share a host");
  shape.group_bytes = 4096;
  CHECK(on({0, 0, 1, 1}).failure().text == "the job has rank groups, which two levels have not");
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
