// Every branch that only a failure takes is taken by some run of this set of seeds.
#include <array>
#include <string>

#include <catch2/catch_test_macros.hpp>

#include "cli/sim/coverage.hpp"
#include "cli/sim/simulator.hpp"
#include "cli/sim/strikes.hpp"

namespace troupe::sim {
namespace {

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
    series{"ring", {.hosts = 3, .workers = 4}, 60},
    series{"top-k", {.hosts = 1, .workers = 3}, 30},              // states that are not whole
    series{"ring", {.hosts = 2, .workers = 4, .joiners = 2}, 20}, // in two levels
};

constexpr std::uint64_t rare_seeds = 1500; // a reader that fails while its worker has no generation

TEST_CASE("sim: every branch of recovery is taken by some run", "[coverage]") {
  for (const auto& one : all_series) {
    simulator simulated{*find_workload(one.workload)};
    for (const auto& scenario : fault_scenarios()) {
      for (std::uint64_t seed = 1; seed <= one.seeds; ++seed)
        REQUIRE(simulated.run({seed, one.where, std::string{scenario.name}}));
    }
  }
  simulator rare;
  for (std::uint64_t seed = 1; seed <= rare_seeds; ++seed)
    REQUIRE(rare.run({seed, {.hosts = 1, .workers = 3}, "prefetcher-and-worker"}));
  CHECK(unreached_probes() == std::vector<std::string_view>{});
}

} // namespace
} // namespace troupe::sim
