#include "cli/troupe/tool_bench.hpp"

#include <algorithm>
#include <cstdio>

#include "bench/collective/allreduce_bench.hpp"
#include "bench/message/message_bench.hpp"
#include "bench/overlap/overlap_bench.hpp"
#include "bench/recovery/recovery_bench.hpp"
#include "bench/step/step_bench.hpp"
#include "bench/support/job_runner.hpp"

namespace troupe {
namespace {

void tell(const std::string& line) {
  std::fprintf(stderr, "%s\n", line.c_str());
}

// What every benchmark takes.
template <class Settings>
Settings settings_of(const bench_command& command) {
  Settings settings;
  settings.quick = command.quick;
  settings.repetitions = command.repetitions.value_or(command.quick ? 1 : settings.repetitions);
  return settings;
}

expected<bench::bench_report> measure(const bench_command& command, bench::job_runner& runner) {
  if (command.what == bench_kind::recovery) {
    bench::recovery_bench_settings settings{.detect_after = command.detect_after, .quick = command.quick};
    settings.strikes_min = command.repetitions.value_or(command.quick ? 1 : settings.strikes_min);
    return bench::bench_recovery(runner, settings, tell);
  }
  if (command.what == bench_kind::message) {
    return bench::bench_message(runner, settings_of<bench::message_bench_settings>(command), tell);
  }
  if (command.what == bench_kind::allreduce) {
    return bench::bench_allreduce(runner, settings_of<bench::allreduce_bench_settings>(command), tell);
  }
  if (command.what == bench_kind::overlap) {
    return bench::bench_overlap(runner, settings_of<bench::overlap_bench_settings>(command), tell);
  }
  auto settings = settings_of<bench::step_bench_settings>(command);
  settings.data = command.data;
  if (command.quick) settings.samples = 16000;
  return bench::bench_step(runner, settings, tell);
}

int say(const expected<bench::bench_report>& result, const bench::row& machine, bool json) {
  if (!result) {
    std::fprintf(stderr, "troupe: bench: %s\n", result.failure().text.c_str());
    return 1;
  }
  if (json)
    std::printf("%s\n", to_json(*result, machine).c_str());
  else
    std::fputs(to_text(*result, machine).c_str(), stdout);
  return 0;
}

} // namespace

int run_bench(const bench_command& command) {
  const auto machine = bench::machine_now();
  auto runner = bench::job_runner::make();
  if (!runner) return say(runner.failure(), machine, command.json);
  const auto result = measure(command, **runner);
  if (const int number = (*runner)->interrupted(); number != 0) return 128 + number;
  return say(result, machine, command.json);
}

} // namespace troupe
