#include <CLI/CLI.hpp>

#include "cli/sim/sim_command.hpp"
#include "cli/sim/strikes.hpp"

namespace troupe {
namespace {

std::string help_of_scenarios() {
  std::string text = "Fault scenarios:\n";
  for (const auto& one : sim::fault_scenarios()) {
    const std::string name{one.name};
    text += "  " + name + std::string(name.size() < 20 ? 20 - name.size() : 1, ' ') + std::string{one.text} +
            "\n";
  }
  return text + "\nExamples:\n"
                "  troupe sim --seeds 1..200 --hosts 8\n"
                "  troupe sim --seeds 1..50 --hosts 1 --workers 3 --faults kill,torn-write\n"
                "  troupe sim --seeds 7 --hosts 64 --steps 200          # one seed prints its trace digest\n"
                "  troupe sim --seeds 1 --faults none --fault kill:worker=1@step=20";
}

} // namespace

CLI::App* register_sim(CLI::App& parent, sim_options& into) {
  auto* sim = parent.add_subcommand("sim", "runs simulated jobs under faults, one a seed");
  sim->add_option("--seeds", into.seeds, "seeds A..B, or one (1..10)");
  sim->add_option("--hosts", into.hosts,
                  "simulated hosts: N, A..B (the seed picks), or a list of these (1..8)");
  sim->add_option("--workers", into.workers,
                  "workers; those beyond the others' joiners start on the first host (the seed picks)");
  sim->add_option("--joiners", into.joiners, "of the workers, those of each host but the first (1)");
  sim->add_option("--workload", into.workload,
                  "softmax, adamw, accumulate, buckets, rounded, wide, ring, top-k, top-k-ring, or any "
                  "(any: the seed picks)");
  sim->add_option("--faults", into.faults, "fault scenarios, with commas between, or \"all\" (random)");
  sim->add_option("--steps", into.steps, "length of the job (the workload's own)");
  sim->add_option("--fault", into.job_faults, "a fault of the job's own plan, as programs take it")
      ->allow_extra_args(false);
  sim->add_option("--fault-plan", into.fault_plan, "the same from a TOML file");
  sim->add_flag("--coverage", into.coverage,
                "lists the branches of recovery that the runs took; exit code 1 if one was not reached");
  sim->add_flag("--json", into.json, "one JSON object on standard output");
  sim->footer(help_of_scenarios);
  sim->callback([&into] { into.given = true; });
  return sim;
}

} // namespace troupe
