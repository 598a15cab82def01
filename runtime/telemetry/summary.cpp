#include "runtime/telemetry/summary.hpp"

#include <array>

#include <nlohmann/json.hpp>

namespace troupe {
namespace {

using json = nlohmann::ordered_json;

json or_null(const std::optional<double>& value) {
  return value ? json(*value) : json(nullptr);
}

json quantiles(const latency_histogram& times) {
  return {{"p50", to_ms(times.p50())}, {"p99", to_ms(times.p99())}};
}

json one_failure(const failure_summary& failure) {
  return {{"kind", failure.kind},
          {"cause", failure.cause},
          {"rank", failure.rank},
          {"step", failure.step},
          {"detected_ms", or_null(failure.detected_ms)},
          {"recovered_ms", or_null(failure.recovered_ms)},
          {"steps_lost", failure.steps_lost},
          {"source", failure.source}};
}

json checkpoints(const job_summary& summary) {
  auto stall = quantiles(summary.checkpoint_stall);
  stall["max"] = to_ms(summary.checkpoint_stall.max());
  return {{"written", summary.checkpoints_written},
          {"failed", summary.checkpoints_failed},
          {"bytes", summary.checkpoint_bytes},
          {"stall_ms", std::move(stall)}};
}

} // namespace

std::string to_json(const job_summary& summary) {
  auto failures = json::array();
  for (const auto& failure : summary.failures)
    failures.push_back(one_failure(failure));
  const json whole{{"program", summary.program},
                   {"version", summary.version},
                   {"seed", summary.seed},
                   {"device", summary.device},
                   {"shards", summary.shards},
                   {"workers_start", summary.workers_start},
                   {"workers_end", summary.workers_end},
                   {"generations", summary.generations},
                   {"steps_committed", summary.steps_committed},
                   {"samples_committed", summary.samples_committed},
                   {"loss_first", or_null(summary.loss_first)},
                   {"loss_last", or_null(summary.loss_last)},
                   {"accuracy", or_null(summary.accuracy)},
                   {"weights_digest", summary.weights_digest},
                   {"state_digest", summary.state_digest},
                   {"wall_s", to_s(summary.wall)},
                   {"samples_per_s", summary.samples_per_s},
                   {"step_ms", quantiles(summary.step_time)},
                   {"comm_wait_ms", quantiles(summary.comm_wait)},
                   {"data_wait_ms", quantiles(summary.data_wait)},
                   {"checkpoint", checkpoints(summary)},
                   {"failures", std::move(failures)},
                   {"restarts", summary.restarts},
                   {"survivors_kept", summary.survivors_kept},
                   {"goodput", summary.goodput},
                   {"exit_reason", summary.exit_reason},
                   {"allocations_per_step", or_null(summary.allocations_per_step)},
                   {"control_allocations_per_s", or_null(summary.control_allocations_per_s)},
                   {"page_faults_per_step", or_null(summary.page_faults_per_step)},
                   {"cpu_ms_per_step", or_null(summary.cpu_ms_per_step)}};
  return whole.dump(2, ' ', false, json::error_handler_t::replace) + "\n";
}

expected<void> write_summary(storage& files, const std::string& path, const job_summary& summary) {
  const auto text = to_json(summary);
  const std::array pieces{std::as_bytes(std::span{text})};
  const auto there = files.file_bytes(path);
  if (!there && there.failure().code != errc::not_found) return files.write_file(path, pieces);
  const auto temporary = path + ".partial";
  if (auto written = files.write_file(temporary, pieces); !written) return written;
  if (auto renamed = files.rename(temporary, path); !renamed) {
    (void)files.remove_all(temporary);
    return renamed;
  }
  const auto slash = path.find_last_of('/');
  return files.sync_directory(slash == std::string::npos ? "." : path.substr(0, slash + 1));
}

} // namespace troupe
