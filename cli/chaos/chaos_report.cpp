#include "cli/chaos/chaos_report.hpp"

#include <algorithm>
#include <array>
#include <cstdarg>
#include <cstdio>

#include <nlohmann/json.hpp>

#include "bench/support/quantiles.hpp"
#include "cli/chaos/timeline.hpp"
#include "runtime/base/units.hpp"

namespace troupe::chaos {
namespace {

using json = nlohmann::ordered_json;
using bench::quantile;

[[gnu::format(printf, 1, 2)]] std::string formatted(const char* form, ...) {
  std::array<char, 256> text{};
  va_list values;
  va_start(values, form);
  std::vsnprintf(text.data(), text.size(), form, values);
  va_end(values);
  return text.data();
}

std::string cell(const std::optional<double>& value, const char* form) {
  std::array<char, 32> text{};
  if (!value) return "-";
  std::snprintf(text.data(), text.size(), form, *value);
  return text.data();
}

std::string counted(std::uint64_t count, const std::string& noun) {
  return std::to_string(count) + " " + noun + (count == 1 ? "" : "s");
}

std::string quantiles_text(const std::vector<double>& values) {
  if (values.empty()) return "-";
  return formatted("%.0f / %.0f ms", quantile(values, 0.5), quantile(values, 0.99));
}

json quantiles_json(const std::vector<double>& values) {
  if (values.empty()) return {{"p50", nullptr}, {"p99", nullptr}};
  return {{"p50", quantile(values, 0.5)}, {"p99", quantile(values, 0.99)}};
}

json or_null(const std::optional<double>& value) {
  return value ? json(*value) : json(nullptr);
}

json usage_json(const process_usage& usage) {
  return {{"descriptors", usage.descriptors}, {"resident_bytes", usage.resident_bytes}};
}

json usage_json(const role_usage& usage) {
  return {{"director", usage_json(usage.director)}, {"worker", usage_json(usage.worker)}};
}

std::uint64_t due_of(const run_verdict& verdict) {
  return static_cast<std::uint64_t>(std::ranges::count(verdict.outcomes, true, &strike_outcome::due));
}

bool kept(const run_verdict& verdict, const chaos_settings& settings) {
  return !verdict.right() || !settings.keep.empty();
}

json strikes_json(const run_verdict& verdict) {
  json strikes = json::array();
  for (std::size_t i = 0; i < verdict.outcomes.size(); ++i) {
    const auto& one = verdict.result.plan[i];
    const auto& outcome = verdict.outcomes[i];
    strikes.push_back({{"kind", one.kind},
                       {"fault", to_text(one)},
                       {"at_s", to_s(one.at)},
                       {"outside", !one.inside},
                       {"due", outcome.due},
                       {"seen", outcome.seen},
                       {"detected_ms", or_null(outcome.detected_ms)},
                       {"recovered_ms", or_null(outcome.recovered_ms)}});
  }
  return strikes;
}

json run_json(const run_verdict& verdict, const chaos_settings& settings) {
  return {{"run", verdict.run},
          {"right", verdict.right()},
          {"exit", verdict.exit},
          {"state_equal", verdict.state_equal},
          {"weights_equal", verdict.weights_equal},
          {"faults", strikes_json(verdict)},
          {"failures", verdict.failures},
          {"restarts", or_null(verdict.restarts)},
          {"generations", or_null(verdict.generations)},
          {"directors", verdict.result.attempts.size()},
          {"wall_s", to_s(verdict.result.wall)},
          {"goodput", or_null(verdict.goodput)},
          {"usage_at_end", usage_json(verdict.result.at_end)},
          {"findings", verdict.findings},
          {"leaks", verdict.leaks},
          {"replay", verdict.right() ? json() : json(replay_command(settings, verdict.run))},
          {"folder", kept(verdict, settings) ? json(verdict.result.folder.string()) : json()}};
}

} // namespace

std::uint64_t chaos_report::equal() const {
  return static_cast<std::uint64_t>(
      std::ranges::count_if(runs, [](const run_verdict& r) { return r.state_equal && r.weights_equal; }));
}

std::uint64_t chaos_report::leaks() const {
  std::uint64_t count = 0;
  for (const auto& run : runs)
    count += run.leaks.size();
  return count;
}

bool chaos_report::right() const {
  return std::ranges::all_of(runs, &run_verdict::right);
}

std::optional<double> chaos_report::goodput_median() const {
  std::vector<double> values;
  for (const auto& run : runs) {
    if (run.goodput) values.push_back(*run.goodput);
  }
  return values.empty() ? std::nullopt : std::optional{bench::median(values)};
}

std::map<std::string, kind_tally> chaos_report::kinds() const {
  std::map<std::string, kind_tally> tallies;
  for (const auto& run : runs) {
    for (std::size_t i = 0; i < run.outcomes.size(); ++i) {
      const auto& outcome = run.outcomes[i];
      if (!outcome.due) continue;
      auto& tally = tallies[run.result.plan[i].kind];
      ++tally.due;
      if (outcome.seen) ++tally.seen;
      if (outcome.detected_ms) tally.detected_ms.push_back(*outcome.detected_ms);
      if (outcome.recovered_ms) tally.recovered_ms.push_back(*outcome.recovered_ms);
    }
  }
  return tallies;
}

std::string heading_of(const chaos_report& report) {
  return formatted("fault-free run: %u workers, %.0f steps, %.1f s, goodput %.2f, state_digest %s\n",
                   report.calm.workers, report.calm.steps, to_s(report.calm.wall), report.calm.goodput,
                   report.calm.state_digest.c_str()) +
         formatted("%5s %7s %9s %-18s %7s %9s %11s %7s %8s %6s\n", "run", "faults", "failures", "exit",
                   "digests", "restarts", "generations", "wall s", "goodput", "leaks");
}

std::string row_of(const run_verdict& verdict) {
  const bool equal = verdict.state_equal && verdict.weights_equal;
  return formatted("%5u %7llu %9llu %-18s %7s %9s %11s %7.1f %8s %6zu\n", verdict.run,
                   static_cast<unsigned long long>(due_of(verdict)),
                   static_cast<unsigned long long>(verdict.failures), verdict.exit.c_str(),
                   equal ? "equal" : "DIFFER", cell(verdict.restarts, "%.0f").c_str(),
                   cell(verdict.generations, "%.0f").c_str(), to_s(verdict.result.wall),
                   cell(verdict.goodput, "%.2f").c_str(), verdict.leaks.size());
}

std::string account_of(const run_verdict& verdict, const chaos_settings& settings) {
  if (verdict.right()) return {};
  const auto run = std::to_string(verdict.run);
  std::string text;
  for (const auto& finding : verdict.findings)
    text += "run " + run + ": " + finding + "\n";
  for (const auto& leak : verdict.leaks)
    text += "run " + run + ": leak: " + leak + "\n";
  text += "run " + run + ": seed " + std::to_string(settings.plan.seed) +
          "; again: " + replay_command(settings, verdict.run) + "\n";
  text += "run " + run + ": plan, events and log are in " + verdict.result.folder.string() + "\n";
  return text + timeline_of(verdict);
}

std::string summary_of(const chaos_report& report) {
  std::string text = formatted("%-20s %6s %6s %22s %22s\n", "fault", "struck", "seen", "detected p50 / p99",
                               "recovered p50 / p99");
  for (const auto& [kind, tally] : report.kinds()) {
    text += formatted("%-20s %6llu %6llu %22s %22s\n", kind.c_str(),
                      static_cast<unsigned long long>(tally.due), static_cast<unsigned long long>(tally.seen),
                      quantiles_text(tally.detected_ms).c_str(), quantiles_text(tally.recovered_ms).c_str());
  }
  const auto right = static_cast<std::size_t>(std::ranges::count_if(report.runs, &run_verdict::right));
  text += std::to_string(report.equal()) + " of " + std::to_string(report.runs.size()) + " equal digests, " +
          counted(report.leaks(), "leak") + ", goodput " + cell(report.goodput_median(), "%.2f") +
          " (median)";
  if (right != report.runs.size()) text += ", wrong: " + counted(report.runs.size() - right, "run");
  if (report.interrupted != 0)
    text += ", interrupted after " + std::to_string(report.runs.size()) + " of " +
            counted(report.settings.runs, "run");
  return text + "\n";
}

std::string to_json(const chaos_report& report) {
  const auto& settings = report.settings;
  json runs = json::array();
  for (const auto& one : report.runs)
    runs.push_back(run_json(one, settings));
  json kinds = json::array();
  for (const auto& [kind, tally] : report.kinds()) {
    kinds.push_back({{"kind", kind},
                     {"struck", tally.due},
                     {"seen", tally.seen},
                     {"detected_ms", quantiles_json(tally.detected_ms)},
                     {"recovered_ms", quantiles_json(tally.recovered_ms)}});
  }
  const auto& calm = report.calm;
  return json{{"program", settings.program},
              {"arguments", settings.arguments},
              {"seed", settings.plan.seed},
              {"mtbf_s", to_s(settings.plan.mtbf)},
              {"faults", settings.plan.kinds},
              {"fault_free",
               {{"workers", calm.workers},
                {"steps", calm.steps},
                {"wall_s", to_s(calm.wall)},
                {"goodput", calm.goodput},
                {"state_digest", calm.state_digest},
                {"weights_digest", calm.weights_digest},
                {"usage_at_most", usage_json(calm.usage)}}},
              {"asked", settings.runs},
              {"runs", runs},
              {"kinds", kinds},
              {"equal", report.equal()},
              {"leaks", report.leaks()},
              {"goodput", or_null(report.goodput_median())},
              {"right", report.right()},
              {"interrupted", report.interrupted != 0}}
      .dump(2, ' ', false, json::error_handler_t::replace);
}

} // namespace troupe::chaos
