// The checkers of the simulation are checked: each planted bug must be found, by a finding of its sort.
//
// For one bug, to see what is found:   build/tests/find_known_bugs "known bugs: each one is found" -c NAME
#include <algorithm>
#include <array>

#include <catch2/catch_test_macros.hpp>

#include "cli/sim/simulator.hpp"
#include "cli/sim/strikes.hpp"
#include "runtime/base/planted_bug.hpp"

namespace troupe::sim {
namespace {

constexpr std::uint64_t seeds = 60;
constexpr layout where{.hosts = 1, .workers = 3};

struct known_bug {
  std::string_view name;
  std::string_view scenario;
  std::string_view finding; // a part of the line that tells it
  std::string_view workload{"softmax"};
};

constexpr std::array<known_bug, 20> bugs{{
    {"canonical_sum.order_reversed", "none", "the final state is"},
    {"catalog.newest_not_verified", "bit-flip", "the job ended with exit code"},
    {"checkpoint.published_before_whole", "none", "is published and does not verify"},
    {"checkpoint.rename_not_synced", "power-loss", "did not survive a loss of power"},
    {"director.fired_fault_forgotten", "planned-all", "the job ended with exit code 3"},
    {"director.restart_counter_reset", "often", "the job ended with exit code 0"},
    {"director.started_before_journaled", "torn-journal", "after generation"},
    {"membership.survivor_not_told", "kill", "a surviving worker lost its process"},
    {"office.bounce_lost", "conversation", "came back"},
    {"office.dead_heard_again", "conversation", "declared lost before"},
    {"office.generation_unchecked", "conversation", "arrived in generation"},
    {"office.request_forgotten", "conversation", "waited for its time-out"},
    {"prefetcher.cursor_off_by_one", "kill", "sample"},
    {"retention.newest_removed", "none", "the newest checkpoint is of step"},
    {"session.digest_not_checked", "damaged-transfers", "the job ended with exit code"},
    {"session.not_sent_again", "conversation", "arrived and"},
    {"shard_pass.begun_before_added", "none", "the final state is", "buckets"},
    {"stream.lease_kept", "throw-prefetcher", "leases are lost"},
    {"worker.checkpoint_of_uncommitted_step", "none", "says another state than without faults"},
    {"worker.step_applied_twice", "kill", "the final state is"},
}};

bool has(const run_result& run, std::string_view text) {
  return std::ranges::any_of(run.findings,
                             [&](const auto& one) { return one.find(text) != std::string::npos; });
}

std::string findings_of(const run_result& run) {
  std::string text = replay_command(run.request, run.workload) + "\n";
  for (const auto& one : run.findings)
    text += "  " + one + "\n";
  return text;
}

TEST_CASE("known bugs: every planted bug is in this program, and has its case", "[known_bugs]") {
  auto planted = planted_bugs::names();
  std::ranges::sort(planted);
  std::vector<std::string_view> listed;
  for (const auto& one : bugs)
    listed.push_back(one.name);
  CHECK(planted == listed);
}

TEST_CASE("known bugs: each one is found", "[known_bugs]") {
  for (const auto& bug : bugs) {
    DYNAMIC_SECTION(bug.name) {
      simulator simulated{*find_workload(bug.workload)};
      planted_bugs::choose({});
      (void)simulated.known(where); // what is right is known before the bug is on
      std::string seen;
      bool found = false;
      for (std::uint64_t seed = 1; seed <= seeds && !found; ++seed) {
        const run_request request{seed, where, std::string{bug.scenario}};
        planted_bugs::choose({});
        const auto without = simulated.run(request);
        planted_bugs::choose(bug.name);
        const auto with = simulated.run(request);
        planted_bugs::choose({});
        REQUIRE((without && with));
        INFO(without->report());
        REQUIRE(without->right());
        found = has(*with, bug.finding);
        if (!with->right()) seen += findings_of(*with);
      }
      INFO("found instead:\n" << seen);
      CHECK(found);
    }
  }
}

} // namespace
} // namespace troupe::sim
