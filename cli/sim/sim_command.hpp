// `troupe sim`: simulated jobs under faults, one run a seed, a number of workers and a fault scenario.
//
//   troupe sim --seeds A..B [--hosts N] [--workload softmax] [--faults LIST]
//              [--coverage] [--json]
//
// `--hosts N`: workers, each a simulated process with an actor system of its own (1 to 4 of them: "all").
// `--faults LIST`: names with commas between, or "all".
// `--coverage`: lists which branches of recovery the runs took, those that none took first.
// Exit codes: 0 every run is right, 1 one is not (its replay command is printed), or with `--coverage` a
// branch was not reached, 2 usage.
#pragma once

#include <iosfwd>
#include <string>

namespace CLI {
class App;
}

namespace troupe {

struct sim_options {
  bool given{false}; // the command line said `sim`
  std::string seeds{"1..10"};
  std::string hosts{"3"};
  std::string workload{"softmax"};
  std::string faults{"all"};
  bool coverage{false};
  bool json{false};
};

// Adds `sim` to `parent`; `into` outlives the parse.
CLI::App* register_sim(CLI::App& parent, sim_options& into);
// Returns the exit code.
[[nodiscard]] int run_sim(const sim_options& options, std::ostream& out, std::ostream& err);

} // namespace troupe
