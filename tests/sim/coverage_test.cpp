// Every branch that only a failure takes is taken by some run of this set of seeds.
#include <array>
#include <string>

#include <catch2/catch_test_macros.hpp>

#include "cli/sim/coverage.hpp"
#include "cli/sim/simulator.hpp"
#include "cli/sim/strikes.hpp"

namespace troupe::sim {
namespace {

// No run takes these branches yet: devices and disks that hang, hosts that are slow for long, and a few
// coincidences of lost paths. One that is reached has to leave this list.
constexpr std::array<std::string_view, 13> beyond_simulation{{
    "detector.everybody_hangs",
    "detector.hangs",
    "detector.straggles",
    "detector.suspected_already",
    "detector.suspicion_lifted",
    "director.journal_hung",
    "director.outsider_left",
    "membership.joined_in_a_generation",
    "membership.leave_deadline_missed",
    "prefetcher.assignment_overtaken",
    "worker.connected_after_the_end",
    "worker.offer_not_sent",
    "worker.peer_unreachable",
}};

struct series {
  const char* workload;
  layout where;
  std::uint64_t seeds;
};
constexpr std::array all_series{
    series{"softmax", {.hosts = 1, .workers = 3}, 200},
    series{"accumulate", {.hosts = 1, .workers = 3}, 30}, // a checkpoint after every step
    series{"softmax", {.hosts = 3, .workers = 4}, 60},
    series{"adamw", {.hosts = 8, .workers = 8}, 20},
};

TEST_CASE("sim: every branch of recovery is taken by some run", "[coverage]") {
  for (const auto& one : all_series) {
    simulator simulated{*find_workload(one.workload)};
    for (const auto& scenario : fault_scenarios()) {
      for (std::uint64_t seed = 1; seed <= one.seeds; ++seed)
        REQUIRE(simulated.run({seed, one.where, std::string{scenario.name}}));
    }
  }
  CHECK(unreached_probes() ==
        std::vector<std::string_view>{beyond_simulation.begin(), beyond_simulation.end()});
}

} // namespace
} // namespace troupe::sim
