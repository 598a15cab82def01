// The real actors of a whole job in one process, under every fault scenario and many seeds.
//
// A failing seed prints its replay command, what struck, and the events:
//   build/tests/sim_cluster sim --seeds 17 --hosts 1 --workers 3 --workload softmax --faults kill
#include <algorithm>
#include <array>

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/generators/catch_generators_range.hpp>

#include "cli/sim/simulator.hpp"

namespace troupe::sim {
namespace {

constexpr std::uint64_t seeds = 50;
constexpr std::uint64_t seeds_elsewhere = 15; // in other layouts

void all_are_right(const std::string& faults, const std::string& workload, layout where,
                   std::uint64_t count) {
  simulator simulated{*find_workload(workload)};
  for (std::uint64_t seed = 1; seed <= count; ++seed) {
    const run_request request{seed, where, faults};
    INFO("replay: build/tests/sim_cluster " << replay_command(request, workload).substr(7));
    const auto result = simulated.run(request);
    REQUIRE(result);
    if (!result->right()) FAIL_CHECK(result->report());
  }
}

TEST_CASE("sim: one seed is one run, with real actor systems (SW-1)", "[sim]") {
  const auto* const faults = GENERATE("none", "kill-two", "random");
  const auto where = GENERATE(layout{1, 3}, layout{4, 5});
  const auto* const workload = GENERATE("softmax", "ring");
  simulator simulated{*find_workload(workload)};
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    const auto first = simulated.run({seed, where, faults});
    const auto again = simulated.run({seed, where, faults});
    REQUIRE((first && again));
    CHECK(first->events == again->events);
    CHECK(first->trace_digest == again->trace_digest);
    CHECK(first->event_lines == again->event_lines);
    const auto other = simulated.run({seed + 1000, where, faults});
    CHECK(other->trace_digest != first->trace_digest);
  }
}

TEST_CASE("sim: without faults every layout ends in one state", "[sim]") {
  for (const auto& workload : built_in_workloads()) {
    simulator simulated{workload};
    const auto alone = simulated.known({1, 1});
    REQUIRE(alone);
    CHECK(alone->checkpoints.size() ==
          (workload.steps() + workload.settings.checkpoint_every - 1) / workload.settings.checkpoint_every);
    for (const auto where :
         {layout{1, 2}, layout{1, 3}, layout{1, 4}, layout{2, 1}, layout{3, 4}, layout{8, 8}}) {
      INFO(workload.name << ", hosts " << where.hosts << ", workers " << where.workers);
      const auto spread = simulated.known(where);
      REQUIRE(spread);
      CHECK(spread->state_digest == alone->state_digest);
      CHECK(spread->checkpoints == alone->checkpoints);
    }
  }
}

TEST_CASE("sim: under every fault the job ends as it would have without", "[sim]") {
  for (const auto& scenario : fault_scenarios()) {
    const std::string faults{scenario.name};
    DYNAMIC_SECTION(faults << ", one host") {
      all_are_right(faults, "softmax", {1, 3}, seeds);
      all_are_right(faults, "softmax", {1, 1}, seeds_elsewhere);
      all_are_right(faults, "adamw", {1, 4}, seeds_elsewhere);
    }
    DYNAMIC_SECTION(faults << ", several hosts") {
      all_are_right(faults, "softmax", {3, 4}, seeds);
      all_are_right(faults, "accumulate", {2, 1}, seeds_elsewhere);
      all_are_right(faults, "adamw", {8, 8}, seeds_elsewhere);
    }
    DYNAMIC_SECTION(faults << ", sums over the network") {
      all_are_right(faults, "ring", {1, 3}, seeds_elsewhere);
      all_are_right(faults, "ring", {3, 4}, seeds);
      all_are_right(faults, "ring", {8, 8}, seeds_elsewhere);
    }
  }
}

// Hosts of two workers each; with three of them the shares are 2, 2, 1, 1, 1 and 1 of 8 shards.
TEST_CASE("sim: hosts of several workers, which sum in two levels or flat, as the seed says (LP-1, LM-2)",
          "[sim]") {
  for (const auto& scenario : fault_scenarios()) {
    const std::string faults{scenario.name};
    DYNAMIC_SECTION(faults) {
      all_are_right(faults, "ring", {2, 4, 2}, seeds_elsewhere);
      all_are_right(faults, "ring", {3, 6, 2}, seeds_elsewhere);
    }
  }
}

TEST_CASE("sim: both ways of summing end in the state of one host", "[sim]") {
  simulator simulated{*find_workload("ring")};
  const auto alone = simulated.known({1, 1});
  REQUIRE(alone);
  for (const auto where : {layout{2, 4, 2}, layout{3, 6, 2}, layout{3, 4}}) {
    std::size_t in_levels = 0;
    std::size_t flat = 0;
    for (std::uint64_t seed = 1; seed <= 10; ++seed) {
      const auto result = simulated.run({seed, where, "none"});
      REQUIRE(result);
      CHECK(result->right());
      if (result->event_lines.find(R"("collective":"sim+ring")") != std::string::npos) ++in_levels;
      if (result->event_lines.find(R"("collective":"ring")") != std::string::npos) ++flat;
    }
    CHECK(in_levels > 0);
    CHECK(flat > 0);
    CHECK(simulated.known(where)->state_digest == alone->state_digest);
  }
}

TEST_CASE("sim: sums that are begun in parts end as whole ones do, whoever dies between two parts (CO-5)",
          "[sim]") {
  const std::string faults = GENERATE("none", "kill-in-part", "kill-two", "throw-worker", "planned-hang",
                                      "planned-skip", "planned-nan", "random");
  all_are_right(faults, "buckets", {1, 3}, seeds);
  all_are_right(faults, "buckets", {3, 4}, seeds_elsewhere);
  all_are_right(faults, "buckets", {1, 8}, seeds_elsewhere);
  all_are_right(faults, "rounded", {1, 3}, seeds_elsewhere);
}

TEST_CASE("sim: with Top-K, whoever dies and when, all go back to a whole state (SE-11)", "[sim]") {
  const std::string faults = GENERATE("none", "kill", "kill-two", "kill-all", "throw-worker", "director-kill",
                                      "planned-nan", "random");
  all_are_right(faults, "top-k", {1, 3}, seeds);
  all_are_right(faults, "top-k", {3, 4}, seeds_elsewhere);
  all_are_right(faults, "top-k-ring", {1, 4}, seeds_elsewhere);
  all_are_right(faults, "top-k-ring", {3, 4}, seeds_elsewhere);
}

TEST_CASE("sim: one survivor of eight gives all others its state, though one dies while it passes it on",
          "[sim]") {
  all_are_right("all-but-one", "softmax", {1, 8}, seeds);
  all_are_right("all-but-one", "softmax", {8, 8}, seeds);
}

TEST_CASE("sim: a version that was replaced is whole as long as it may stand in (CK-1)", "[sim]") {
  all_are_right("lost-replacement", "accumulate", {1, 3}, seeds);
  all_are_right("lost-replacement", "accumulate", {2, 2, 2}, seeds);
}

TEST_CASE("sim: where a sum fails and everybody lives, all go on with what they hold", "[sim]") {
  all_are_right("broken-sum", "softmax", {1, 1}, seeds);
  all_are_right("broken-sum", "softmax", {1, 3}, seeds);
  all_are_right("broken-sum", "buckets", {3, 4}, seeds_elsewhere);
  all_are_right("broken-sum", "top-k", {1, 3}, seeds_elsewhere);
}

// Each was wrong once; what it was: docs/design/0052.
TEST_CASE("sim: seeds that were found wrong", "[sim]") {
  struct found {
    std::uint64_t seed;
    layout where;
    const char* workload;
    const char* faults{"random"};
  };
  constexpr std::array all{found{2773, {2, 2, 2}, "ring"},
                           found{1764, {2, 2, 2}, "accumulate"},
                           found{808, {2, 4, 2}, "ring"},
                           found{1816, {2, 3, 2}, "top-k-ring"},
                           found{1390, {2, 2}, "ring"},
                           found{622, {2, 3, 2}, "ring"},
                           found{1060, {2, 3, 2}, "adamw"},
                           found{2262, {2, 4, 2}, "softmax"},
                           found{1103, {2, 3}, "accumulate"},
                           found{170, {2, 3, 2}, "ring", "planned-cut"},
                           found{191, {2, 3, 2}, "ring", "planned-cut"},
                           found{130, {2, 3, 2}, "ring", "deaf"}};
  for (const auto& one : all) {
    simulator simulated{*find_workload(one.workload)};
    const auto result = simulated.run({one.seed, one.where, one.faults});
    REQUIRE(result);
    if (!result->right()) FAIL_CHECK(result->report());
  }
}

} // namespace
} // namespace troupe::sim
