// The real actors of a whole job in one process, under every fault scenario and many seeds.
//
// A failing seed prints its replay command, what struck, and the events:
//   build/tests/sim_cluster sim --seeds 17..17 --hosts 3 --faults kill
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/generators/catch_generators_range.hpp>

#include "cli/sim/scenario.hpp"

namespace troupe::sim {
namespace {

constexpr std::uint64_t seeds = 100;
constexpr std::uint64_t seeds_elsewhere = 20; // with other numbers of workers

void all_are_right(const std::string& faults, std::uint32_t workers, std::uint64_t count) {
  simulator simulated;
  for (std::uint64_t seed = 1; seed <= count; ++seed) {
    INFO("replay: build/tests/sim_cluster " << replay_command({seed, workers, faults}).substr(7));
    const auto result = simulated.run({seed, workers, faults});
    REQUIRE(result);
    if (!result->right()) FAIL_CHECK(result->report());
  }
}

TEST_CASE("sim: one seed is one run, with real actor systems (SW-1)", "[sim]") {
  const auto* const faults = GENERATE("none", "kill-two", "mixed");
  simulator simulated;
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    const auto first = simulated.run({seed, 3, faults});
    const auto again = simulated.run({seed, 3, faults});
    REQUIRE((first && again));
    CHECK(first->events == again->events);
    CHECK(first->trace_digest == again->trace_digest);
    CHECK(first->event_lines == again->event_lines);
    const auto other = simulated.run({seed + 1000, 3, faults});
    CHECK(other->trace_digest != first->trace_digest);
  }
}

TEST_CASE("sim: without faults every number of workers ends in one state", "[sim]") {
  simulator simulated;
  for (std::uint32_t workers = 2; workers <= 4; ++workers) {
    CHECK(simulated.known(workers).state_digest == simulated.known(1).state_digest);
    CHECK(simulated.known(workers).checkpoints == simulated.known(1).checkpoints);
  }
  CHECK(simulated.known(1).checkpoints.size() == 5);
}

TEST_CASE("sim: under every fault the job ends as it would have without", "[sim]") {
  for (const auto& scenario : fault_scenarios()) {
    DYNAMIC_SECTION(scenario.name << ", 3 workers") {
      all_are_right(std::string{scenario.name}, 3, seeds);
    }
    for (const std::uint32_t workers : {1U, 2U, 4U})
      DYNAMIC_SECTION(scenario.name << ", " << workers << " workers") {
        all_are_right(std::string{scenario.name}, workers, seeds_elsewhere);
      }
  }
}

} // namespace
} // namespace troupe::sim
