#include "bench/step/step_bench.hpp"

#include <algorithm>
#include <cstdio>
#include <optional>

#include "bench/support/job_runner.hpp"
#include "bench/support/quantiles.hpp"

namespace troupe::bench {
namespace {

using nlohmann::json;

constexpr duration run_limit = std::chrono::minutes{5};
constexpr double of_bare_min = 0.95;    // of the bare loop's samples/s, with one worker
constexpr double scaling_min = 1.6;     // two workers over one
constexpr std::uint64_t steps_min = 60; // the first fifty warm up

struct configuration {
  std::uint32_t workers{0}; // 0: the bare loop
  std::uint32_t global_batch{0};
};

// What the runs of one configuration measured.
struct series {
  configuration what;
  std::vector<double> samples_per_s, step_p50, step_p99, comm_p50, data_p50, faults, cpu;
  std::optional<double> allocations, control_allocations;
};

struct bench_round {
  job_runner& runner;
  const step_bench_settings& settings;

  [[nodiscard]] std::uint64_t steps(std::uint32_t global_batch) const {
    return std::max(steps_min, settings.samples / global_batch);
  }
  [[nodiscard]] std::vector<std::string> arguments(const configuration& what) const {
    std::vector<std::string> out{"--steps",        std::to_string(steps(what.global_batch)),
                                 "--global-batch", std::to_string(what.global_batch),
                                 "--seed",         "7"};
    if (!settings.data.empty()) out.insert(out.end(), {"--data", settings.data});
    if (what.workers != 0) out.insert(out.end(), {"--workers", std::to_string(what.workers)});
    return out;
  }
};

// Of the time in steps: starting and ending the processes is not a step.
double steady_rate(const json& summary) {
  const double in_steps = summary.at("goodput").get<double>() * summary.at("wall_s").get<double>();
  return in_steps > 0 ? summary.at("samples_committed").get<double>() / in_steps : 0;
}

expected<void> run_bare(const bench_round& in, series& into) {
  const auto said = in.runner.output_of(beside_this_program("bare_step"), in.arguments(into.what), run_limit);
  if (!said) return said.failure();
  const auto result = json::parse(*said, nullptr, false);
  if (result.is_discarded()) return error{errc::corrupt, "bare_step: its output is not JSON"};
  into.samples_per_s.push_back(result.at("samples_per_s"));
  into.step_p50.push_back(result.at("step_ms").at("p50"));
  into.step_p99.push_back(result.at("step_ms").at("p99"));
  into.cpu.push_back(result.at("cpu_ms_per_step"));
  return {};
}

expected<void> run_troupe(const bench_round& in, series& into) {
  const auto summary =
      in.runner.summary_of(beside_this_program("fashion_mnist"), in.arguments(into.what), run_limit);
  if (!summary) return summary.failure();
  into.samples_per_s.push_back(steady_rate(*summary));
  into.step_p50.push_back(summary->at("step_ms").at("p50"));
  into.step_p99.push_back(summary->at("step_ms").at("p99"));
  into.comm_p50.push_back(summary->at("comm_wait_ms").at("p50"));
  into.data_p50.push_back(summary->at("data_wait_ms").at("p50"));
  if (const auto& cpu = summary->at("cpu_ms_per_step"); !cpu.is_null()) into.cpu.push_back(cpu);
  if (const auto& faults = summary->at("page_faults_per_step"); !faults.is_null())
    into.faults.push_back(faults);
  return {};
}

// Once, by the same program with counting memory: its time does not count.
expected<void> count_allocations(const bench_round& in, series& into) {
  const auto summary =
      in.runner.summary_of(beside_this_program("fashion_mnist_counted"), in.arguments(into.what), run_limit);
  if (!summary) return summary.failure();
  const auto optional_of = [&](const char* name) {
    const auto& value = summary->at(name);
    return value.is_null() ? std::nullopt : std::optional{value.get<double>()};
  };
  into.allocations = optional_of("allocations_per_step");
  into.control_allocations = optional_of("control_allocations_per_s");
  return {};
}

row row_of(const series& from) {
  const auto middle = [](const std::vector<double>& values) {
    return values.empty() ? row() : row(median(values));
  };
  const auto known = [](const std::optional<double>& value) { return value ? row(*value) : row(); };
  const auto best = from.samples_per_s.empty() ? row() : row(std::ranges::max(from.samples_per_s));
  return {{"system", from.what.workers == 0 ? "bare" : "troupe"},
          {"workers", std::max(from.what.workers, 1U)},
          {"global_batch", from.what.global_batch},
          {"samples_per_s", middle(from.samples_per_s)},
          {"best_samples_per_s", best},
          {"step_ms", {{"p50", middle(from.step_p50)}, {"p99", middle(from.step_p99)}}},
          {"cpu_ms_per_step", middle(from.cpu)},
          {"comm_wait_ms", {{"p50", middle(from.comm_p50)}}},
          {"data_wait_ms", {{"p50", middle(from.data_p50)}}},
          {"allocations_per_step", known(from.allocations)},
          {"control_allocations_per_s", known(from.control_allocations)},
          {"page_faults_per_step", middle(from.faults)}};
}

check ratio_check(const std::string& name, const series& one, const series& other, double bound) {
  return {name, median(ratios(one.samples_per_s, other.samples_per_s)), bound, true};
}

// On a busy machine the best runs, and the processor's time, say more than medians.
std::string best_note(const std::string& batch, const std::vector<series>& all) {
  const auto best = [&](std::size_t one, std::size_t other) {
    return std::ranges::max(all[one].samples_per_s) / std::ranges::max(all[other].samples_per_s);
  };
  char text[160];
  std::snprintf(text, sizeof text, "best runs%s: 1 worker / bare loop %.3f, 2 workers / 1 worker %.3f",
                batch.c_str(), best(1, 0), best(2, 1));
  return text;
}

expected<void> measure(const bench_round& in, std::vector<series>& all, const progress_teller& tell) {
  for (std::uint32_t i = 0; i < in.settings.repetitions; ++i) {
    for (auto& one : all) {
      auto ran = one.what.workers == 0 ? run_bare(in, one) : run_troupe(in, one);
      if (!ran) return ran;
      tell("round " + std::to_string(i + 1) + ", batch " + std::to_string(one.what.global_batch) + ", " +
           (one.what.workers == 0 ? "bare loop" : std::to_string(one.what.workers) + " workers") + ": " +
           std::to_string(static_cast<long>(one.samples_per_s.back())) + " samples/s");
    }
  }
  for (auto& one : all) {
    if (one.what.workers == 0) continue;
    if (auto counted = count_allocations(in, one); !counted) return counted;
  }
  return {};
}

} // namespace

expected<bench_report> bench_step(job_runner& runner, const step_bench_settings& settings,
                                  const progress_teller& tell) {
  const bench_round in{runner, settings};
  bench_report report{.bench = "step"};
  for (const std::uint32_t global_batch : {128U, 1024U}) {
    std::vector<series> all{{{0, global_batch}}, {{1, global_batch}}, {{2, global_batch}}};
    if (auto measured = measure(in, all, tell); !measured) return measured.failure();
    for (const auto& one : all)
      report.rows.push_back(row_of(one));
    const auto batch = ", batch " + std::to_string(global_batch);
    report.checks.push_back(ratio_check("1 worker / bare loop" + batch, all[1], all[0], of_bare_min));
    if (global_batch == 1024U)
      report.checks.push_back(ratio_check("2 workers / 1 worker" + batch, all[2], all[1], scaling_min));
    report.notes.push_back(best_note(batch, all));
  }
  report.notes.insert(
      report.notes.end(),
      {"bare: one thread, four batches ready in memory: no reader, no engine, no all-reduce, no actors",
       "samples_per_s and step_ms are medians over " + std::to_string(settings.repetitions) +
           " runs that took turns; ratios are medians of neighbouring runs",
       "allocations_per_step: device, reader and storage threads, from step 50 on; control: the event loop",
       "cpu_ms_per_step: processor time of all workers together; best_samples_per_s: of the best run"});
  return report;
}

} // namespace troupe::bench
