// `troupe sim`: simulated jobs under faults, one run a seed, a number of hosts and a fault scenario.
//
//   troupe sim --seeds A..B [--hosts N] [--workers N] [--workload W] [--faults LIST] [--steps N]
//              [--fault SPEC] [--fault-plan FILE] [--coverage] [--json]
//
// `--coverage`: lists which branches of recovery the runs took, those that none took first.
// Exit codes: 0 every run is right, 1 one is not (its replay command and timeline are printed), or with
// `--coverage` a branch was not reached, 2 usage.
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
  std::string joiners{"1"};
  std::string workload{"any"};
  std::string faults{"random"};
  std::string steps; // empty: the workload's own
  std::vector<std::string> job_faults;
  std::string fault_plan;
  bool coverage{false};
  bool json{false};
};

// Adds `sim` to `parent`; `into` outlives the parse.
CLI::App* register_sim(CLI::App& parent, sim_options& into);
// Returns the exit code.
[[nodiscard]] int run_sim(const sim_options& options, std::ostream& out, std::ostream& err);

} // namespace troupe
