#include "cli/sim/sim_command.hpp"

#include <charconv>
#include <optional>
#include <ostream>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "cli/sim/coverage.hpp"
#include "cli/sim/scenario.hpp"

namespace troupe {
namespace {

constexpr int exit_right = 0;
constexpr int exit_wrong = 1;
constexpr int exit_usage = 2;
constexpr std::uint32_t workers_max = 64;

struct sim_plan {
  std::uint64_t first{1};
  std::uint64_t last{1};
  std::vector<std::uint32_t> workers;
  std::vector<std::string> faults;
};

std::optional<std::uint64_t> number_of(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value);
  return failed == std::errc{} && end == text.data() + text.size() ? std::optional{value} : std::nullopt;
}

std::vector<std::string> words_of(const std::string& list) {
  std::vector<std::string> words;
  for (std::size_t begin = 0; begin <= list.size();) {
    const auto end = std::min(list.find(',', begin), list.size());
    if (end > begin) words.push_back(list.substr(begin, end - begin));
    begin = end + 1;
  }
  return words;
}

expected<sim_plan> plan_of(const sim_options& options) {
  sim_plan plan;
  const auto dots = options.seeds.find("..");
  const auto first = number_of(std::string_view{options.seeds}.substr(0, dots));
  const auto last =
      dots == std::string::npos ? first : number_of(std::string_view{options.seeds}.substr(dots + 2));
  if (!first || !last || *first > *last)
    return error{errc::bad_argument,
                 "--seeds " + options.seeds + ": accepted: A..B with A at most B, or one number"};
  plan.first = *first;
  plan.last = *last;
  if (options.hosts == "all") {
    plan.workers = {1, 2, 3, 4};
  } else {
    const auto workers = number_of(options.hosts);
    if (!workers || *workers == 0 || *workers > workers_max)
      return error{errc::bad_argument, "--hosts " + options.hosts + ": accepted: 1 to " +
                                           std::to_string(workers_max) + ", or all"};
    plan.workers = {static_cast<std::uint32_t>(*workers)};
  }
  if (options.workload != "softmax")
    return error{errc::bad_argument, "--workload " + options.workload + ": accepted: softmax"};
  for (const auto& one : sim::fault_scenarios()) {
    if (options.faults == "all") plan.faults.emplace_back(one.name);
  }
  if (options.faults != "all") plan.faults = words_of(options.faults);
  return plan;
}

struct tally {
  std::uint64_t runs{0};
  std::uint64_t wrong{0};
  std::uint64_t events{0};
  double virtual_s{0};
  nlohmann::json failures = nlohmann::json::array();
};

void count(tally& into, const sim::run_result& result, const sim_options& options, std::ostream& err) {
  ++into.runs;
  into.events += result.events;
  into.virtual_s += to_s(result.virtual_time);
  if (result.right()) return;
  ++into.wrong;
  into.failures.push_back({{"replay", sim::replay_command(result.request)}, {"findings", result.findings}});
  if (!options.json) err << result.report() << std::flush;
}

} // namespace

int run_sim(const sim_options& options, std::ostream& out, std::ostream& err) {
  const auto plan = plan_of(options);
  if (!plan) {
    err << "troupe sim: " << plan.failure().text << "\n";
    return exit_usage;
  }
  sim::simulator simulator;
  nlohmann::json rows = nlohmann::json::array();
  std::uint64_t wrong = 0;
  for (const auto& faults : plan->faults) {
    for (const auto workers : plan->workers) {
      tally sums;
      for (auto seed = plan->first; seed <= plan->last; ++seed) {
        const auto result = simulator.run({seed, workers, faults});
        if (!result) {
          err << "troupe sim: " << result.failure().text << "\n";
          return exit_usage;
        }
        count(sums, *result, options, err);
      }
      wrong += sums.wrong;
      rows.push_back({{"faults", faults},
                      {"workers", workers},
                      {"runs", sums.runs},
                      {"wrong", sums.wrong},
                      {"events", sums.events},
                      {"virtual_s", sums.virtual_s},
                      {"failures", sums.failures}});
      if (!options.json)
        out << faults << ", " << workers << " workers: " << sums.runs << " runs, " << sums.wrong << " wrong, "
            << sums.virtual_s << " s simulated\n"
            << std::flush;
    }
  }
  nlohmann::json all{{"sim", rows}, {"wrong", wrong}};
  if (options.coverage) all["coverage"] = sim::coverage_json();
  if (options.json) out << all.dump() << "\n";
  if (options.coverage && !options.json) sim::tell_coverage(out);
  const bool covered = !options.coverage || sim::unreached_probes().empty();
  return wrong == 0 && covered ? exit_right : exit_wrong;
}

} // namespace troupe
