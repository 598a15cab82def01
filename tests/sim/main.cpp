// The simulation's tests, and the command that replays one of their seeds:
//   sim_cluster [Catch2 arguments]
//   sim_cluster sim --seeds 17..17 --hosts 3 --faults kill
#include <iostream>
#include <string_view>

#include <CLI/CLI.hpp>
#include <catch2/catch_session.hpp>

#include "cli/sim/sim_command.hpp"

int main(int argc, char** argv) {
  if (argc < 2 || std::string_view{argv[1]} != "sim") return Catch::Session{}.run(argc, argv);
  CLI::App app{"simulated jobs"};
  troupe::sim_options options;
  troupe::register_sim(app, options);
  CLI11_PARSE(app, argc, argv);
  return troupe::run_sim(options, std::cout, std::cerr);
}
