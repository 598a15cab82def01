#include <CLI/CLI.hpp>

#include "cli/sim/sim_command.hpp"

namespace troupe {

CLI::App* register_sim(CLI::App& parent, sim_options& into) {
  auto* sim = parent.add_subcommand("sim", "runs simulated jobs under faults, one a seed");
  sim->add_option("--seeds", into.seeds, "seeds A..B, or one (1..10)");
  sim->add_option("--hosts", into.hosts, "workers, or \"all\": 1 to 4 (3)");
  sim->add_option("--workload", into.workload, "softmax (softmax)");
  sim->add_option("--faults", into.faults, "fault scenarios, with commas between, or \"all\" (all)");
  sim->add_flag("--coverage", into.coverage,
                "lists the branches of recovery that the runs took; exit code 1 if one was not reached");
  sim->add_flag("--json", into.json, "one JSON object on standard output");
  sim->callback([&into] { into.given = true; });
  return sim;
}

} // namespace troupe
