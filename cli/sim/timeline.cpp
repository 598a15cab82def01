#include "cli/sim/timeline.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <sstream>
#include <utility>

#include <nlohmann/json.hpp>

namespace troupe::sim {
namespace {

using moment = std::pair<double, std::string>; // ms

std::string line_of(double ms, const std::string& text) {
  std::array<char, 32> time{};
  std::snprintf(time.data(), time.size(), "%12.3f ms  ", ms);
  return time.data() + text;
}

std::string words_of(const nlohmann::json& event) {
  std::string text = event.at("event");
  std::string separator = "  ";
  for (const auto& [key, value] : event.items()) {
    if (key == "t" || key == "event") continue;
    text += separator + key + " " + (value.is_string() ? value.get<std::string>() : value.dump());
    separator = ", ";
  }
  return text;
}

} // namespace

std::vector<std::string> timeline_of(const cluster& of, const std::vector<strike_report>& struck) {
  std::vector<moment> moments;
  for (const auto& one : struck)
    moments.emplace_back(to_ms(one.at),
                         "** " + one.what + " (before event " + std::to_string(one.event) + ")");
  // A director's events count from its own start; the first of each is job_started.
  std::istringstream lines{of.events()};
  std::size_t lives = 0;
  double began = 0;
  for (std::string line; std::getline(lines, line);) {
    const auto event = nlohmann::json::parse(line, nullptr, false);
    if (event.is_discarded()) continue;
    if (event.at("event") == "job_started" && lives < of.begins().size())
      began = to_ms(of.begins()[lives++].time_since_epoch());
    moments.emplace_back(began + 1000 * event.at("t").get<double>(), words_of(event));
  }
  std::ranges::stable_sort(moments, {}, &moment::first);
  std::vector<std::string> out;
  for (const auto& [ms, text] : moments)
    out.push_back(line_of(ms, text));
  return out;
}

} // namespace troupe::sim
