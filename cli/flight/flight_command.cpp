#include "cli/flight/flight_command.hpp"

#include <algorithm>
#include <ostream>

#include <nlohmann/json.hpp>

#include "runtime/telemetry/flight_compare.hpp"
#include "runtime/telemetry/flight_overlap.hpp"

namespace troupe {
namespace {

using json = nlohmann::ordered_json;

constexpr int exit_agree = 0;
constexpr int exit_differ = 1;
constexpr int exit_usage = 2;
constexpr int exit_unreadable = 5;
constexpr std::size_t notes_shown_max = 50;

json rank_json(const flight_dump& dump) {
  json out{{"rank", dump.about.rank.value()},
           {"by", to_string(dump.about.by)},
           {"cause", dump.about.cause},
           {"step_started", dump.about.step_started.value()},
           {"step_applied", dump.about.step_applied.value()},
           {"records", dump.records.size()},
           {"damage", dump.damage}};
  return out;
}

json step_json(const overlapped_step& step) {
  auto parts = json::array();
  for (const auto& one : step.parts)
    parts.push_back({{"bytes", one.bytes}, {"began_ms", to_ms(one.began)}, {"ended_ms", to_ms(one.ended)}});
  return {{"step", step.step.value()},
          {"rank", step.rank.value()},
          {"backward_end_ms", to_ms(step.backward_end)},
          {"sum_end_ms", to_ms(step.sum_end)},
          {"hidden", step.hidden()},
          {"parts", std::move(parts)}};
}

// By step, then by rank.
std::vector<overlapped_step> steps_of(const std::vector<flight_dump>& dumps, std::size_t count) {
  std::vector<overlapped_step> all;
  for (const auto& one : dumps)
    for (auto& step : overlap_of(one, count))
      all.push_back(std::move(step));
  std::ranges::stable_sort(all, {}, &overlapped_step::step);
  return all;
}

json generation_json(generation_id generation, const std::vector<flight_dump>& dumps,
                     const flight_finding& finding) {
  auto ranks = json::array();
  for (const auto& one : dumps)
    ranks.push_back(rank_json(one));
  return {{"generation", generation.value()},
          {"world", dumps.front().about.world},
          {"verdict", to_string(finding.what)},
          {"ranks_named", finding.ranks},
          {"group", finding.group},
          {"sequence", finding.sequence},
          {"step", finding.step},
          {"waited_s", to_s(finding.waited)},
          {"text", finding.text},
          {"dumps", std::move(ranks)}};
}

int fail(const flight_options& options, const std::string& text, int code, std::ostream& out,
         std::ostream& err) {
  err << "troupe: flight: " << text << "\n";
  if (options.json) out << json{{"error", text}, {"exit_code", code}}.dump() << "\n";
  return code;
}

void tell_notes(const std::vector<flight_files::note>& notes, std::ostream& err) {
  for (std::size_t i = 0; i < std::min(notes.size(), notes_shown_max); ++i)
    err << "troupe: flight: " << notes[i].file << ": " << notes[i].text << "\n";
  if (notes.size() > notes_shown_max)
    err << "troupe: flight: and " << notes.size() - notes_shown_max << " files more\n";
}

} // namespace

int run_flight(storage& files, const flight_options& options, std::ostream& out, std::ostream& err) {
  const auto found = read_flight_files(files, options.directory);
  if (!found) return fail(options, found.failure().text, exit_usage, out, err);
  tell_notes(found->notes, err);
  const bool damaged = std::ranges::any_of(found->notes, &flight_files::note::damage);
  if (found->dumps.empty())
    return damaged ? fail(options, options.directory + ": no dump can be read", exit_unreadable, out, err)
                   : fail(options, options.directory + " holds no flight dumps", exit_usage, out, err);
  auto generations = json::array();
  bool differ = false;
  for (const auto& [generation, dumps] : found->dumps) {
    const auto finding = compare_flights(dumps);
    differ = differ || finding.what != flight_verdict::agree;
    if (!options.json) out << "generation " << to_string(generation) << ": " << finding.text << "\n";
    generations.push_back(generation_json(generation, dumps, finding));
    if (options.steps == 0) continue;
    auto& steps = generations.back()["steps"] = json::array();
    for (const auto& step : steps_of(dumps, options.steps)) {
      steps.push_back(step_json(step));
      if (!options.json) out << "  " << to_text(step) << "\n";
    }
  }
  const int code = differ ? exit_differ : damaged ? exit_unreadable : exit_agree;
  if (!options.json) return code;
  auto notes = json::array();
  for (const auto& one : found->notes)
    notes.push_back({{"file", one.file}, {"text", one.text}});
  out << json{{"generations", std::move(generations)}, {"notes", std::move(notes)}, {"exit_code", code}}.dump(
             -1, ' ', false, json::error_handler_t::replace)
      << "\n";
  return code;
}

} // namespace troupe
