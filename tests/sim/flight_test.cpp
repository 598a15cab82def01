// Flight recorder in whole jobs: what the ranks of a struck generation left names the one that was struck.
#include <catch2/catch_test_macros.hpp>

#include "cli/flight/flight_command.hpp"
#include "cli/sim/simulator.hpp"
#include "runtime/telemetry/flight_compare.hpp"

namespace troupe::sim {
namespace {

constexpr const char* flight_directory = "/job/flight";

workload recorded() {
  auto what = *find_workload("softmax");
  what.settings.flight = flight_directory;
  return what;
}

// Of the first generation, which the fault ended. A simulated process is struck between two tasks: one that
// is killed or stopped has called the sum of its step, and may have been in it.
std::vector<std::string> look(cluster& over, std::optional<flight_verdict> wanted) {
  const auto files = read_flight_files(over.machine().disk, flight_directory);
  if (!files) return {files.failure().text};
  std::vector<std::string> findings;
  for (const auto& note : files->notes)
    findings.push_back(note.file + ": " + note.text);
  const auto first = files->dumps.find(generation_id{1});
  if (first == files->dumps.end()) return {"no dumps of the first generation"};
  const auto found = compare_flights(first->second);
  if (found.what != wanted.value_or(found.what) || found.ranks != std::vector<std::uint32_t>{1})
    findings.push_back(std::string{to_string(found.what)} + ": " + found.text);
  if (found.step < 20 || found.step > 21) findings.push_back("another step: " + found.text);
  return findings;
}

TEST_CASE("flight: after a fault the dumps of a simulated job name the rank, in every seed", "[flight]") {
  struct one_case {
    const char* fault;
    std::optional<flight_verdict> wanted;
  };
  for (const auto& one : {one_case{"kill:worker=1@step=20", {}},
                          one_case{"stop:worker=1@step=20,for=3s", flight_verdict::missing},
                          one_case{"skip-collective:worker=1@step=20", flight_verdict::left_out},
                          one_case{"hang-in-collective:worker=1@step=20", flight_verdict::behind}}) {
    DYNAMIC_SECTION(one.fault) {
      simulator simulated{recorded()};
      simulated.set_job_faults({*parse_fault(one.fault)});
      simulated.add_invariant("flight", [&](cluster& over) { return look(over, one.wanted); });
      for (std::uint64_t seed = 1; seed <= 10; ++seed) {
        const auto result = simulated.run({seed, {1, 3}, "none"});
        REQUIRE(result);
        INFO("seed " << seed);
        CHECK(result->findings == std::vector<std::string>{});
      }
    }
  }
}

TEST_CASE("flight: a job without a failure leaves no dump", "[flight]") {
  simulator simulated{recorded()};
  simulated.add_invariant("flight", [](cluster& over) {
    const auto files = read_flight_files(over.machine().disk, flight_directory);
    return files && !files->dumps.empty() ? std::vector<std::string>{"dumps"} : std::vector<std::string>{};
  });
  const auto result = simulated.run({1, {1, 3}, "none"});
  REQUIRE(result);
  CHECK(result->findings == std::vector<std::string>{});
}

} // namespace
} // namespace troupe::sim
