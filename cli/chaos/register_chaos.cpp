#include <CLI/CLI.hpp>

#include "cli/chaos/chaos_command.hpp"

namespace troupe {
namespace {

constexpr auto chaos_footer = R"(
PROGRAM is run once without faults, then N times under faults drawn from the seed: each run has its own
folder with checkpoints, events, summary and plan file, so leave those options of PROGRAM to chaos. A run is
right when it ends with exit code 0 and the digests of the fault-free run, and leaves no process, descriptor,
memory, segment, temporary file or unfinished checkpoint behind.
Faults are struck inside the program (--fault-plan), and from outside by signals: outside-kill, outside-stop.
A director that was killed is followed by the same command again. A worker is struck at most 4 times a minute.
For each run that is wrong: what differs or was left, the command that runs it again, and what happened.
Exit codes: 0 every run is right, 1 one is not, 2 usage, 130 after Ctrl-C.

  troupe chaos -n 5 -- build/bin/fashion_mnist --workers 3 --epochs 2
  troupe chaos -n 40 --mtbf 2s --faults kill,stop,director-kill -- build/bin/fashion_mnist --workers 3
  troupe chaos -n 1 --first-run 17 --keep run17 -- build/bin/fashion_mnist --workers 3)";

} // namespace

CLI::App* register_chaos(CLI::App& parent, chaos::chaos_options& into) {
  auto* chaos = parent.add_subcommand("chaos", "runs a program under random faults");
  chaos->add_option("-n", into.runs, "runs (10)")
      ->type_name("N")
      ->check(CLI::Range(std::uint32_t{1}, chaos::runs_max));
  chaos->add_option("--seed", into.seed, "of all that is drawn (1)")->type_name("S");
  chaos->add_option("--mtbf", into.mtbf, "mean time between faults (3s)")->type_name("DURATION");
  chaos->add_option("--faults", into.faults, "kinds to draw from, with commas between (those that heal)")
      ->type_name("LIST");
  chaos->add_option("--time-limit", into.time_limit, "of a run (10 fault-free runs, at least 2min)")
      ->type_name("DURATION");
  chaos->add_option("--keep", into.keep, "new folder for what runs write (a temporary one)")
      ->type_name("DIR");
  chaos->add_option("--first-run", into.first_run, "number of the first run (1)")
      ->type_name("N")
      ->check(CLI::Range(std::uint32_t{1}, chaos::runs_max));
  chaos->add_option("--report", into.report, "file for the JSON report")->type_name("FILE");
  chaos->add_flag("--stop-on-first", into.stop_on_first, "ends after the first run that is wrong");
  chaos->add_flag("--json", into.json, "one JSON object on standard output");
  chaos->footer(chaos_footer);
  return chaos;
}

} // namespace troupe
