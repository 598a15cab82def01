#include "bench/recovery/recovery_plan.hpp"

#include <algorithm>

#include "bench/support/quantiles.hpp"
#include "runtime/base/units.hpp"

namespace troupe::bench {
namespace {

std::string fault_name(const recovery_scenario& what) {
  return what.signal == "SIGSTOP" ? "stop" : "kill";
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
  const auto steps = 2 * steps_before_strike + what.workers * steps_between_strikes;
  std::vector<std::string> out{"--workers",      std::to_string(what.workers),
                               "--steps",        std::to_string(steps),
                               "--detect-after", format_duration(what.detect_after)};
  for (std::uint32_t worker = 0; worker < what.workers; ++worker) {
    const auto step = steps_before_strike + worker * steps_between_strikes;
    out.insert(out.end(), {"--fault", fault_name(what) + ":worker=" + std::to_string(worker) +
                                          "@step=" + std::to_string(step)});
  }
  return out;
}

expected<void> add_summary(strike_samples& into, const recovery_scenario& what,
                           const nlohmann::json& summary) {
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
  into.survivors_kept = into.survivors_kept && summary.at("survivors_kept").get<bool>();
  return {};
}

row row_of(const recovery_scenario& what, const strike_samples& from, const std::string& system) {
  return {{"system", system},
          {"fault", what.signal},
          {"workers", what.workers},
          {"state_bytes", what.state_bytes},
          {"detected_ms", p50_p99(from.detected_ms)},
          {"recovered_ms", p50_p99(from.recovered_ms)},
          {"steps_lost", p50_max(from.steps_lost)},
          {"survivors_kept", from.survivors_kept},
          {"strikes", from.recovered_ms.size()}};
}

} // namespace troupe::bench
