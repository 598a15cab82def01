// The `troupe` tool: starts programs, looks at checkpoints, measures. One binary, a subcommand each.
#include <cstdio>
#include <ctime>
#include <iostream>

#include <unistd.h>

#include "cli/troupe/tool_bench.hpp"
#include "cli/troupe/tool_commands.hpp"
#include "runtime/host/posix_storage.hpp"

namespace {

using namespace troupe;

// With --json standard output is ours alone: the program's goes to standard error.
int run_program(const run_command& command) {
  const int own_output = command.json ? ::dup(STDOUT_FILENO) : -1;
  if (command.json) ::dup2(STDERR_FILENO, STDOUT_FILENO);
  const auto result = launch(command.request);
  if (!result) {
    std::fprintf(stderr, "troupe: run: %s\n", result.failure().text.c_str());
    return exit_code_of(result.failure().code);
  }
  if (command.json) ::dprintf(own_output, "%s\n", to_json(command.request, *result).c_str());
  const auto& failed = result->core.first_failure();
  if (failed && result->pids.size() > 1) {
    std::fprintf(stderr, "troupe: run: copy %u ended first: %s\n", failed->rank, failed->end.text().c_str());
  }
  return result->core.exit_code();
}

int look_at_checkpoints(ckpt_options options) {
  posix_storage files;
  options.now_unix_s = static_cast<std::uint64_t>(std::time(nullptr));
  return run_ckpt(files, options, std::cout, std::cerr);
}

int look_at_flight(const flight_options& options) {
  posix_storage files;
  return run_flight(files, options, std::cout, std::cerr);
}

} // namespace

int main(int argc, char** argv) {
  const auto line = parse_tool_line({argv + 1, argv + argc});
  std::fputs(line.out.c_str(), stdout);
  std::fputs(line.err.c_str(), stderr);
  if (const auto* run = std::get_if<run_command>(&line.command)) return run_program(*run);
  if (const auto* ckpt = std::get_if<ckpt_options>(&line.command)) return look_at_checkpoints(*ckpt);
  if (const auto* bench = std::get_if<bench_command>(&line.command)) return run_bench(*bench);
  if (const auto* sim = std::get_if<sim_options>(&line.command)) return run_sim(*sim, std::cout, std::cerr);
  if (const auto* chaos = std::get_if<chaos::chaos_settings>(&line.command))
    return run_chaos(*chaos, std::cout, std::cerr);
  if (const auto* doctor = std::get_if<doctor_options>(&line.command)) return run_doctor(*doctor, std::cout);
  if (const auto* flight = std::get_if<flight_options>(&line.command)) return look_at_flight(*flight);
  return line.exit_code;
}
