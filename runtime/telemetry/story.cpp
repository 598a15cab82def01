#include "runtime/telemetry/story.hpp"

#include <array>
#include <cmath>
#include <cstdio>

namespace troupe {
namespace {

std::string number(const char* form, double value) {
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), form, value);
  return text.data();
}

std::string whole(double value) {
  return std::to_string(std::llround(value));
}

std::string tell_source(std::string_view source) {
  if (source == "peer") return "restored from a peer";
  if (source == "memory") return "restored from memory";
  if (source == "disk") return "restored from a checkpoint on disk";
  return source.empty() ? "restored" : "restored from " + std::string{source};
}

} // namespace

std::string tell_count(double value) {
  if (!std::isfinite(value)) return "?";
  if (value < 10) return number("%.2g", value);
  if (value < 999.5) return whole(value);
  constexpr std::array<const char*, 3> suffixes{"k", "M", "G"};
  std::size_t i = 0;
  value /= 1000;
  for (; value >= 999.5 && i + 1 < suffixes.size(); ++i)
    value /= 1000;
  return number(value < 99.95 ? "%.1f" : "%.0f", value) + suffixes[i];
}

std::string tell_duration(duration d) {
  const auto s = to_s(d);
  if (s < 1e-3) return number("%.2g ms", s * 1e3);
  if (s < 0.9995) return whole(s * 1e3) + " ms";
  if (s < 9.95) return number("%.1f s", s);
  const auto seconds = std::llround(s);
  if (seconds < 60) return std::to_string(seconds) + " s";
  if (seconds < 3600) return std::to_string(seconds / 60) + " min " + std::to_string(seconds % 60) + " s";
  return std::to_string(seconds / 3600) + " h " + std::to_string(seconds / 60 % 60) + " min";
}

std::string tell_number_of(std::uint64_t count, std::string_view noun) {
  return std::to_string(count) + " " + std::string{noun} + (count == 1 ? "" : "s");
}

std::string tell(const job_progress& now) {
  std::string text = "step " + std::to_string(now.step);
  if (now.steps_total > 0) {
    const auto share = 100.0 * static_cast<double>(now.step) / static_cast<double>(now.steps_total);
    text += "/" + std::to_string(now.steps_total) + " (" + whole(std::floor(share)) + " %)";
  }
  if (now.loss) text += "  loss " + number("%.4f", *now.loss);
  text += "  " + tell_count(now.samples_per_s) + " samples/s  " + tell_number_of(now.workers, "worker") +
          "  generation " + std::to_string(now.generation);
  if (now.left) text += "  " + tell_duration(*now.left) + " left";
  return text;
}

std::string tell_detected(const failure_story& failure) {
  std::string text = "worker " + std::to_string(failure.rank);
  if (failure.pid != 0) text += " (pid " + std::to_string(failure.pid) + ")";
  text += " " + (failure.what.empty() ? "failed" : std::string{failure.what});
  text += failure.step == 0 ? " before the first step" : " at step " + std::to_string(failure.step);
  return text + ": detected in " + tell_duration(failure.detected);
}

std::string tell_recovered(const failure_story& failure) {
  return tell_detected(failure) + ", " + tell_source(failure.source) + ", training again after " +
         tell_duration(failure.recovered) + ", " +
         (failure.steps_lost == 0 ? "no step" : tell_number_of(failure.steps_lost, "step")) + " lost";
}

} // namespace troupe
