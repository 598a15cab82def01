#include "bench/recovery/recovery_bench.hpp"

#include "bench/recovery/recovery_job.hpp"
#include "bench/recovery/recovery_plan.hpp"
#include "bench/recovery/restart_baseline.hpp"
#include "bench/support/job_runner.hpp"
#include "bench/support/quantiles.hpp"
#include "runtime/base/units.hpp"
#include "runtime/train/optimizer.hpp"
#include "runtime/train/parameter_store.hpp"

namespace troupe::bench {
namespace {

constexpr duration run_limit = std::chrono::minutes{3};
constexpr double detected_ms_max = 50;
constexpr double recovered_ms_max = 400;
constexpr double left_ms_max = 20;
constexpr double stop_detected_max = 2; // x detect_after

// Parameters and momentum, as the program lays them out.
std::uint64_t state_bytes_of(const examples::mlp_shape& shape) {
  parameter_store store{1};
  const examples::mlp model{store, shape};
  const auto rule = make_optimizer(sgd{.momentum = 0.9F});
  store.freeze((*rule)->slot_names());
  return store.layout().bytes();
}

std::vector<recovery_scenario> scenarios(const recovery_bench_settings& settings) {
  struct job {
    std::string program;
    std::uint64_t bytes;
  };
  const job small{"recovery_job", state_bytes_of(recovery_shape)};
  const job example{"fashion_mnist", state_bytes_of({})};
  std::vector<recovery_scenario> out;
  const auto add = [&](const char* fault, std::uint32_t workers, const job& what) {
    out.push_back({fault, workers, what.program, what.bytes, settings.strikes_min, settings.detect_after});
  };
  for (const auto* signal : {"SIGKILL", "SIGSTOP"}) {
    for (const std::uint32_t workers : {2U, 4U}) {
      if (settings.quick && workers == 4) continue;
      add(signal, workers, small);
      if (!settings.quick) add(signal, workers, example);
    }
  }
  for (const auto* fault : {"skip-collective", "hang-in-collective"})
    if (!settings.quick) add(fault, 4, small);
  return out;
}

struct recovery_run {
  job_runner& runner;
  const recovery_bench_settings& settings;
  const std::function<void(const std::string&)>& tell;
  bench_report& report;
};

std::string name_of(const recovery_scenario& what) {
  return what.fault + ", " + std::to_string(what.workers) + " workers, " + std::to_string(what.state_bytes) +
         " bytes of state";
}

void add_checks(const recovery_run& in, const recovery_scenario& what, const strike_samples& from) {
  in.report.checks.push_back({name_of(what) + ": last survivor out of the collective, slowest",
                              quantile(from.left_ms, 1.0), left_ms_max, false, " ms"});
  if (what.fault == "SIGSTOP") {
    const auto worst = quantile(from.detected_ms, 1.0) / to_ms(what.detect_after);
    in.report.checks.push_back(
        {name_of(what) + ": slowest detection", worst, stop_detected_max, false, " x detect_after"});
  } else if (what.fault == "SIGKILL" && what.workers == 4 && what.program == "recovery_job") {
    in.report.checks.push_back(
        {name_of(what) + ": detected p50", quantile(from.detected_ms, 0.5), detected_ms_max, false, " ms"});
    in.report.checks.push_back({name_of(what) + ": recovered p50", quantile(from.recovered_ms, 0.5),
                                recovered_ms_max, false, " ms"});
  }
}

expected<void> strike(const recovery_run& in, const recovery_scenario& what) {
  strike_samples samples;
  for (std::uint32_t i = 0; i < runs_needed(what); ++i) {
    const auto ran =
        in.runner.account_of(beside_this_program(what.program), strike_arguments(what), run_limit);
    if (!ran) return ran.failure();
    if (auto added = add_run(samples, what, ran->summary, ran->events); !added) return added;
  }
  in.report.rows.push_back(row_of(what, samples, "troupe"));
  add_checks(in, what, samples);
  in.tell(name_of(what) + ": recovered in " +
          std::to_string(static_cast<long>(quantile(samples.recovered_ms, 0.5))) + " ms (p50 of " +
          std::to_string(samples.recovered_ms.size()) + ")");
  return {};
}

expected<void> restart(const recovery_run& in, std::uint32_t workers) {
  recovery_scenario what{"SIGKILL of all",        workers,
                         "recovery_job",          state_bytes_of(recovery_shape),
                         in.settings.strikes_min, in.settings.detect_after};
  strike_samples samples;
  for (std::uint32_t i = 0; i < what.strikes_min; ++i) {
    if (auto done = restart_once(in.runner, what, samples); !done) return done;
  }
  in.report.rows.push_back(row_of(what, samples, "restart"));
  in.tell("full restart, " + std::to_string(workers) + " workers: training again after " +
          std::to_string(static_cast<long>(quantile(samples.recovered_ms, 0.5))) + " ms");
  return {};
}

} // namespace

expected<bench_report> bench_recovery(job_runner& runner, const recovery_bench_settings& settings,
                                      const std::function<void(const std::string&)>& tell) {
  bench_report report{.bench = "recovery"};
  const recovery_run in{runner, settings, tell, report};
  for (const auto& what : scenarios(settings)) {
    if (auto struck = strike(in, what); !struck) return struck.failure();
  }
  for (const std::uint32_t workers : {2U, 4U}) {
    if (settings.quick && workers == 4) continue;
    if (auto restarted = restart(in, workers); !restarted) return restarted.failure();
  }
  report.notes = {
      "detected: fault to the director's decision; left: from there to the last survivor out of the "
      "collective; "
      "recovered: fault to the first new step; detect_after is " +
          format_duration(settings.detect_after),
      "restart: all processes are killed right after a checkpoint is on disk, and started again with "
      "--resume "
      "auto; steps since the newest checkpoint are lost on top of that"};
  return report;
}

} // namespace troupe::bench
