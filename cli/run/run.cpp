#include "cli/run/run.hpp"

#include <cstdio>
#include <cstdlib>

#include "cli/run/program_note.hpp"
#include "cli/run/run_roles.hpp"

namespace troupe {
namespace {

// Not read by the program itself: the linker carries it into the file.
[[gnu::section(".note.troupe"), gnu::used]] alignas(4) const program_note note = program_note_expected;

} // namespace

int run(const training_graph& graph, int argc, char** argv) {
  const char* role = std::getenv(role_variable);
  if (role != nullptr && std::string_view{role} == "worker") return run_worker(graph);
  auto parsed = parse_command_line(graph, argc, argv);
  if (!parsed.out.empty()) std::fputs(parsed.out.c_str(), stdout);
  if (!parsed.err.empty()) std::fputs(parsed.err.c_str(), stderr);
  if (!parsed.settings) return parsed.exit_code;
  if (auto supported = check_supported(*parsed.settings); !supported)
    return say_error(graph, supported.failure());
  return parsed.settings->join.empty() ? run_director(graph, *parsed.settings)
                                       : run_joiner(graph, *parsed.settings);
}

} // namespace troupe
