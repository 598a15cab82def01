#include "runtime/policy/broadcast_plan.hpp"

#include <algorithm>
#include <map>
#include <set>

#include <catch2/catch_test_macros.hpp>

#include "runtime/base/counter_rng.hpp"

namespace troupe {
namespace {

std::vector<rank_id> ranks(std::uint32_t first, std::uint32_t count) {
  std::vector<rank_id> all;
  for (std::uint32_t i = 0; i < count; ++i)
    all.emplace_back(first + i);
  return all;
}

// ceil(log2((sources + joiners) / sources)), in whole numbers.
std::uint32_t rounds_max(std::size_t sources, std::size_t joiners) {
  std::uint32_t rounds = 0;
  for (auto holders = sources; holders < sources + joiners; holders *= 2)
    ++rounds;
  return rounds;
}

void check(const std::vector<rank_id>& sources, const std::vector<rank_id>& joiners) {
  const auto plan = broadcast_plan(sources, joiners);
  std::map<rank_id, std::uint32_t> holds_since; // rank -> round
  for (const auto each : sources)
    holds_since[each] = 0;
  std::set<std::pair<std::uint32_t, rank_id>> sent;
  std::vector<rank_id> received;
  std::uint32_t newest = 1;
  for (const auto& hop : plan) {
    REQUIRE(holds_since.contains(hop.from));                          // nobody sends what it does not have
    REQUIRE(holds_since.at(hop.from) < hop.round);                    // BC-1
    REQUIRE(holds_since.emplace(hop.to, hop.round).second);           // BC-1: once
    REQUIRE(sent.emplace(hop.round, hop.from).second);                // BC-3
    REQUIRE(hop.round >= newest);                                     // BC-3
    REQUIRE(hop.round <= rounds_max(sources.size(), joiners.size())); // BC-2
    newest = hop.round;
    received.push_back(hop.to);
  }
  REQUIRE(received == joiners); // BC-1, BC-3
}

TEST_CASE("broadcast plan: each joiner once, no more rounds than doubling takes (BC-1, BC-2, BC-3)") {
  for (std::uint32_t sources = 1; sources <= 9; ++sources) {
    for (std::uint32_t joiners = 0; joiners <= 40; ++joiners) {
      INFO(sources << " sources, " << joiners << " joiners");
      check(ranks(0, sources), ranks(sources, joiners));
    }
  }
}

TEST_CASE("broadcast plan: holds for any ranks in any order (BC-1, BC-2, BC-3)") {
  const counter_rng random{5, 0};
  for (std::uint64_t round = 0; round < 300; ++round) {
    std::vector<rank_id> sources{rank_id{0}}, joiners;
    for (std::uint32_t rank = 1; rank < 64; ++rank)
      (random.bits(round * 100 + rank) % 3 == 0 ? sources : joiners).emplace_back(rank);
    check(sources, joiners);
  }
}

TEST_CASE("broadcast plan: one survivor of eight") {
  const auto plan = broadcast_plan(ranks(3, 1), std::vector{rank_id{0}, rank_id{1}, rank_id{2}, rank_id{4},
                                                            rank_id{5}, rank_id{6}, rank_id{7}});
  std::vector<std::pair<std::uint32_t, std::uint32_t>> hops;
  for (const auto& hop : plan)
    hops.emplace_back(hop.from.value(), hop.to.value());
  CHECK(hops == std::vector<std::pair<std::uint32_t, std::uint32_t>>{
                    {3, 0}, {3, 1}, {0, 2}, {3, 4}, {0, 5}, {1, 6}, {2, 7}});
  CHECK(plan.back().round == 3);
}

TEST_CASE("broadcast plan: as many sources as joiners send one copy each, at once") {
  for (const auto& hop : broadcast_plan(ranks(0, 4), ranks(4, 4))) {
    CHECK(hop.round == 1);
    CHECK(hop.from.value() + 4 == hop.to.value());
  }
}

TEST_CASE("broadcast plan: where nobody holds anything, nobody sends") {
  CHECK(broadcast_plan({}, ranks(0, 3)).empty());
  CHECK(broadcast_plan(ranks(0, 3), {}).empty());
}

} // namespace
} // namespace troupe
