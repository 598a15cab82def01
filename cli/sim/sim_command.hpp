// `troupe sim`: simulated jobs under faults, one run a seed, a number of hosts and a fault scenario.
//
//   troupe sim --seeds A..B [--hosts N] [--workers N] [--workload W] [--faults LIST] [--steps N]
//              [--fault SPEC] [--fault-plan FILE] [--json]
//
// Exit codes: 0 every run is right, 1 one is not (its replay command and timeline are printed), 2 usage.
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace troupe {

struct sim_options {
  bool given{false}; // the command line said `sim`
  std::string seeds{"1..10"};
  std::string hosts{"1..8"};
  std::string workers; // empty: the seed picks
  std::string workload{"any"};
  std::string faults{"random"};
  std::string steps; // empty: the workload's own
  std::vector<std::string> job_faults;
  std::string fault_plan;
  bool json{false};
};

// Adds `sim` to `parent`; `into` outlives the parse.
CLI::App* register_sim(CLI::App& parent, sim_options& into);
// Returns the exit code.
[[nodiscard]] int run_sim(const sim_options& options, std::ostream& out, std::ostream& err);

} // namespace troupe
