#include <CLI/CLI.hpp>

#include "cli/flight/flight_command.hpp"

namespace troupe {

CLI::App* register_flight(CLI::App& parent, flight_options& into) {
  auto* flight = parent.add_subcommand("flight", "says where the ranks of a failed job first did not agree");
  flight->add_option("DIR", into.directory, "what the job's --flight named")->required();
  flight->add_flag("--json", into.json, "one JSON object on standard output");
  flight->add_option("--steps", into.steps, "shows how much of the newest N sums went on during backward (0)")
      ->type_name("N")
      ->check(CLI::Range(0U, 1024U));
  flight->footer(R"(
Exit code: 0 the ranks agree, 1 they do not, 2 no such directory or no dumps, 5 a dump cannot be read whole.
Of a job that runs: kill -USR1 PID of its director writes the dumps of all its ranks, then look at them.)");
  return flight;
}

} // namespace troupe
