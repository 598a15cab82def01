#include "bench/recovery/recovery_plan.hpp"

#include <algorithm>

#include "bench/support/quantiles.hpp"
#include "runtime/base/units.hpp"

namespace troupe::bench {
namespace {

std::string fault_name(const recovery_scenario& what) {
  if (what.fault == "SIGKILL") return "kill";
  return what.fault == "SIGSTOP" ? "stop" : what.fault;
}

bool hangs(const recovery_scenario& what) {
  return what.fault == "hang-in-collective";
}

row p50_max(const std::vector<double>& values) {
  if (values.empty()) return {{"p50", nullptr}, {"max", nullptr}};
  return {{"p50", quantile(values, 0.5)}, {"max", std::ranges::max(values)}};
}

} // namespace

std::uint32_t runs_needed(const recovery_scenario& what) {
  return std::max(1U, (what.strikes_min + what.workers - 1) / what.workers);
}

std::vector<std::string> strike_arguments(const recovery_scenario& what) {
  const auto before = hangs(what) ? steps_before_hang : steps_before_strike;
  const auto between = hangs(what) ? steps_between_hangs : steps_between_strikes;
  const auto steps = 2 * before + what.workers * between;
  std::vector<std::string> out{"--workers",      std::to_string(what.workers),
                               "--steps",        std::to_string(steps),
                               "--detect-after", format_duration(what.detect_after)};
  for (std::uint32_t worker = 0; worker < what.workers; ++worker) {
    const auto step = before + worker * between;
    out.insert(out.end(), {"--fault", fault_name(what) + ":worker=" + std::to_string(worker) +
                                          "@step=" + std::to_string(step)});
  }
  return out;
}

std::vector<double> leaving_times(const std::vector<nlohmann::json>& events) {
  std::vector<double> out;
  double decided = 0; // 0: no failure is open
  double left = 0;
  const auto close = [&] {
    if (decided > 0 && left > decided) out.push_back(1000 * (left - decided));
    decided = 0;
  };
  for (const auto& one : events) {
    const std::string what = one.at("event");
    if (what == "failure_detected" && decided == 0) decided = one.at("t").get<double>();
    if (what == "collective_aborted") left = one.at("t");
    if (what == "generation_started") close();
  }
  close();
  return out;
}

expected<void> add_run(strike_samples& into, const recovery_scenario& what, const nlohmann::json& summary,
                       const std::vector<nlohmann::json>& events) {
  const auto& failures = summary.at("failures");
  if (failures.size() != what.workers)
    return error{errc::corrupt, what.program + ": " + std::to_string(failures.size()) + " failures, not " +
                                    std::to_string(what.workers)};
  for (const auto& one : failures) {
    const auto& detected = one.at("detected_ms");
    const auto& recovered = one.at("recovered_ms");
    if (detected.is_null() || recovered.is_null())
      return error{errc::corrupt,
                   what.program + ": a failure without times: " + one.at("cause").get<std::string>()};
    into.detected_ms.push_back(detected);
    into.recovered_ms.push_back(recovered);
    into.steps_lost.push_back(one.at("steps_lost"));
  }
  const auto left = leaving_times(events);
  if (left.size() != failures.size())
    return error{errc::corrupt, what.program + ": survivors left after " + std::to_string(left.size()) +
                                    " of " + std::to_string(failures.size()) + " failures"};
  into.left_ms.insert(into.left_ms.end(), left.begin(), left.end());
  into.survivors_kept = into.survivors_kept && summary.at("survivors_kept").get<bool>();
  return {};
}

row row_of(const recovery_scenario& what, const strike_samples& from, const std::string& system) {
  return {{"system", system},
          {"fault", what.fault},
          {"workers", what.workers},
          {"state_bytes", what.state_bytes},
          {"detected_ms", p50_p99(from.detected_ms)},
          {"left_ms", p50_max(from.left_ms)},
          {"recovered_ms", p50_p99(from.recovered_ms)},
          {"steps_lost", p50_max(from.steps_lost)},
          {"survivors_kept", from.survivors_kept},
          {"strikes", from.recovered_ms.size()}};
}

} // namespace troupe::bench
