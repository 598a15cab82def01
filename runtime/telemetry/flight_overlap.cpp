#include "runtime/telemetry/flight_overlap.hpp"

#include <algorithm>
#include <cstdio>
#include <map>

#include "runtime/base/units.hpp"

namespace troupe {
namespace {

std::string ms_text(duration d) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2f", to_ms(d));
  return text;
}

// With several sums a step (accumulation) the parts belong to the first sum that was called after them.
void add_step(const flight_dump& dump, const flight_record& sum, const std::vector<flight_record>& parts,
              std::vector<overlapped_step>& to) {
  if (parts.empty()) return;
  const auto zero = parts.front().created_ns;
  overlapped_step made{.rank = dump.about.rank,
                       .step = step_id{sum.step},
                       .backward_end = duration{sum.created_ns - zero},
                       .sum_end = duration{sum.finished_ns - zero}};
  for (const auto& part : parts) {
    if (!part.finished()) return;
    made.parts.push_back(
        {part.elements * sizeof(float), duration{part.started_ns - zero}, duration{part.finished_ns - zero}});
  }
  to.push_back(std::move(made));
}

} // namespace

double overlapped_step::hidden() const {
  duration all = sum_end - std::max(backward_end, parts.empty() ? backward_end : parts.back().ended);
  for (const auto& part : parts)
    all += part.ended - part.began;
  const auto waited = sum_end - backward_end;
  return all.count() <= 0 ? 0 : std::clamp(1.0 - to_s(waited) / to_s(all), 0.0, 1.0);
}

std::vector<overlapped_step> overlap_of(const flight_dump& dump, std::size_t count) {
  std::vector<overlapped_step> steps;
  std::vector<flight_record> parts;
  bool whole = dump.about.before == 0; // else the first step may have lost parts
  for (const auto& record : dump.records) {
    if (record.group == flight_parts_group) parts.push_back(record);
    if (record.group != 0) continue;
    if (whole && record.finished()) add_step(dump, record, parts, steps);
    whole = true;
    parts.clear();
  }
  if (steps.size() > count) steps.erase(steps.begin(), steps.end() - static_cast<std::ptrdiff_t>(count));
  return steps;
}

std::string to_text(const overlapped_step& what) {
  auto text = "step " + to_string(what.step) + " rank " + to_string(what.rank) + ": parts ";
  for (const auto& part : what.parts)
    text += (&part == &what.parts.front() ? "" : ", ") + ms_text(part.began) + "-" + ms_text(part.ended) +
            " ms (" + format_size(part.bytes) + ")";
  return text + "; backward ends at " + ms_text(what.backward_end) + " ms, the sum at " +
         ms_text(what.sum_end) + " ms: " + std::to_string(static_cast<int>(what.hidden() * 100)) +
         " % hidden";
}

} // namespace troupe
