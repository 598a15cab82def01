#include "cli/chaos/timeline.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <string_view>

#include "cli/chaos/event_file.hpp"

namespace troupe::chaos {
namespace {

constexpr std::array<std::string_view, 3> left_out{"checkpoint_taken", "checkpoint_written", "health"};
constexpr std::array<const char*, 3> numbers_told{"rank", "pid", "step"};
constexpr std::array<const char*, 3> words_told{"cause", "source", "reason"};

struct line {
  double at_s;
  std::string text;
};

std::string tell(const nlohmann::json& event) {
  auto text = word(event, "event");
  for (const auto* field : numbers_told) {
    if (const auto value = number(event, field))
      text += std::string{" "} + field + " " + std::to_string(static_cast<long>(*value));
  }
  for (const auto* field : words_told) {
    if (const auto value = word(event, field); !value.empty()) text += ": " + value;
  }
  return text;
}

void add_attempt(std::vector<line>& lines, const attempt& one) {
  const double began = to_s(one.told.value_or(one.started));
  lines.push_back({to_s(one.started), "the program was started"});
  for (const auto& event : one.events) {
    if (std::ranges::find(left_out, word(event, "event")) != left_out.end()) continue;
    lines.push_back({began + number(event, "t").value_or(0), tell(event)});
  }
  lines.push_back({to_s(one.ended), "the program ended: " + one.end.text()});
}

} // namespace

std::string timeline_of(const run_verdict& verdict) {
  std::vector<line> lines;
  for (const auto& one : verdict.result.attempts)
    add_attempt(lines, one);
  for (std::size_t i = 0; i < verdict.result.plan.size(); ++i) {
    const auto& one = verdict.result.plan[i];
    const auto drawn = verdict.result.attempts.front().told.value_or(duration{0}) + one.at;
    if (!verdict.outcomes[i].due) continue;
    lines.push_back({to_s(verdict.result.struck[i].value_or(drawn)), "-> " + to_text(one)});
  }
  std::ranges::stable_sort(lines, {}, &line::at_s);
  const auto skipped = lines.size() - std::min(lines.size(), timeline_lines_max);
  std::string text = skipped == 0 ? "" : "  ... " + std::to_string(skipped) + " lines before\n";
  for (std::size_t i = skipped; i < lines.size(); ++i) {
    std::array<char, 24> moment{};
    std::snprintf(moment.data(), moment.size(), "  %9.3f s  ", lines[i].at_s);
    text += moment.data() + lines[i].text + "\n";
  }
  return text;
}

} // namespace troupe::chaos
