// Simulator: a whole job under one fault scenario and one seed, from start to verdict. What a test uses.
//
//   sim::simulator simulated{{.name = "mine", .graph = my_graph, .settings = my_settings}};
//   for (std::uint64_t seed = 1; seed <= 100; ++seed) {
//     const auto result = simulated.run({.seed = seed, .where = {.hosts = 3}, .faults = "random"});
//     REQUIRE(result);
//     INFO(result->report());
//     CHECK(result->right());
//   }
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "cli/sim/checkers.hpp"

namespace troupe::sim {

struct run_request {
  std::uint64_t seed{1};
  layout where{};
  std::string faults{"random"}; // a fault scenario's name, or a mishap's of one's own
};

struct run_result {
  run_request request;
  std::string workload;
  std::string options;               // further ones of the command that replays it
  std::vector<std::string> findings; // empty: the run is right
  std::string trace_digest;
  std::uint64_t events{0};   // tasks and timers that the driver ran
  std::uint64_t messages{0}; // between processes
  duration virtual_time{0};
  std::uint64_t recomputed{0}; // batches
  std::uint64_t strikes{0};
  std::string event_lines; // as --events writes them
  std::vector<std::string> timeline;
  std::vector<std::string> log;

  [[nodiscard]] bool right() const { return findings.empty(); }
  [[nodiscard]] std::string replay() const; // the command
  // What a person needs to see of a run that went wrong: how to replay it, what is wrong, what happened.
  [[nodiscard]] std::string report() const;
};

[[nodiscard]] std::string replay_command(const run_request& what, const std::string& workload);

class simulator {
public:
  explicit simulator(workload what = built_in_workloads().front());

  // Asked when a run is over; a text for each violation.
  using invariant_check = std::function<std::vector<std::string>(cluster&)>;
  void add_invariant(std::string name, invariant_check check);
  // A fault of one's own: a scenario of that name strikes once with it, "random" draws it like all others.
  void add_fault(std::string name, mishap strike);
  // Faults that every run's job has in its own plan, as --fault and --fault-plan give them.
  void set_job_faults(fault_plan faults) { job_faults_ = std::move(faults); }

  // errc::bad_argument: no such scenario, a layout or a workload that cannot be.
  [[nodiscard]] expected<run_result> run(const run_request& what);
  // What a run without faults ends with; made once a layout.
  [[nodiscard]] expected<reference> known(layout where);
  [[nodiscard]] const workload& what() const { return workload_; }

private:
  struct named_check {
    std::string name;
    invariant_check check;
  };
  [[nodiscard]] expected<void> prepare(layout where);
  [[nodiscard]] std::string replay_options() const;
  [[nodiscard]] expected<fault_scenario> scenario_of(const std::string& name) const;

  workload workload_;
  std::shared_ptr<const sample_contents> samples_;
  std::vector<named_check> checks_;
  std::vector<named_mishap> mishaps_;
  fault_plan job_faults_;
  std::map<layout, reference> known_;
};

} // namespace troupe::sim
