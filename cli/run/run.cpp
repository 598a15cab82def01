#include "cli/run/run.hpp"

#include <cstdio>
#include <cstdlib>

#include <net/if.h>

#include "cli/run/program_note.hpp"
#include "cli/run/run_roles.hpp"
#include "transports/ucx/lanes.hpp"

namespace troupe {
namespace {

// What the options can say, but this build cannot do yet: refused, never ignored.
expected<void> check_supported(const job_settings& settings) {
  const auto refuse = [](const std::string& what, const std::string& why) {
    return error{errc::bad_argument, what + ": " + why};
  };
  if (!settings.metrics.empty()) {
    return refuse("--metrics " + settings.metrics,
                  "this build serves no metrics; use --events and --summary");
  }
  return {};
}

// Not read by the program itself: the linker carries it into the file.
[[gnu::section(".note.troupe"), gnu::used]] alignas(4) const program_note note = program_note_expected;

} // namespace

expected<std::unique_ptr<host_environment>>
open_host(const std::string& transport, const std::string& network, const std::optional<gpu_use>& gpu) {
  std::string there;
  if (auto* all = ::if_nameindex(); all != nullptr) {
    for (const auto* one = all; one->if_index != 0; ++one)
      there += (there.empty() ? "" : ", ") + std::string{one->if_name};
    ::if_freenameindex(all);
  }
  if (::if_nametoindex(network.c_str()) == 0)
    return error{errc::bad_argument, "--network " + network + ": no such device; accepted: " + there};
  auto lanes = settings_for(transport);
  lanes.devices = network;
  auto made = host_environment::open(log_level::warning, std::move(lanes), gpu);
  if (made || !gpu || made.failure().code != errc::bad_argument) return made;
  return error{errc::bad_argument, "--device cuda:" + std::to_string(gpu->index) + ": " +
                                       made.failure().text + "; accepted: auto, cpu"};
}

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
