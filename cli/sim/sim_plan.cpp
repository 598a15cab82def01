#include "cli/sim/sim_plan.hpp"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <optional>
#include <sstream>
#include <string_view>

#include "runtime/base/limits.hpp"

namespace troupe::sim {
namespace {

constexpr std::uint64_t seeds_max = 1'000'000;
constexpr std::uint64_t steps_max = 10'000;
constexpr std::size_t plan_bytes_max = std::size_t{1} << 20;
constexpr std::uint32_t more_workers_max = 3;
constexpr std::uint32_t small_workers_max = 8; // shards of the small workloads
constexpr const char* wide = "wide";

error refused(const std::string& option, const std::string& value, const std::string& accepted) {
  return {errc::bad_argument, option + " " + value + ": accepted: " + accepted};
}

std::optional<std::uint64_t> number_of(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value);
  return failed == std::errc{} && end == text.data() + text.size() ? std::optional{value} : std::nullopt;
}

struct range {
  std::uint64_t first{0};
  std::uint64_t last{0};
};

// "A..B", or one number.
std::optional<range> range_of(std::string_view text) {
  const auto dots = text.find("..");
  const auto first = number_of(text.substr(0, dots));
  const auto last = dots == std::string_view::npos ? first : number_of(text.substr(dots + 2));
  if (!first || !last || *first > *last) return std::nullopt;
  return range{*first, *last};
}

std::vector<std::string> words_of(const std::string& list) {
  std::vector<std::string> words;
  for (std::size_t begin = 0; begin <= list.size();) {
    const auto end = std::min(list.find(',', begin), list.size());
    words.push_back(list.substr(begin, end - begin));
    begin = end + 1;
  }
  return words;
}

expected<void> read_hosts(const sim_options& options, sim_plan& into) {
  const auto most = std::uint64_t{limits::workers_max};
  for (const auto& word : words_of(options.hosts)) {
    const auto hosts = range_of(word);
    if (!hosts || hosts->first == 0 || hosts->last > most)
      return refused("--hosts", options.hosts,
                     "N, A..B (the seed picks), or several with commas between, from 1 to " +
                         std::to_string(most));
    into.hosts.push_back({static_cast<std::uint32_t>(hosts->first), static_cast<std::uint32_t>(hosts->last)});
  }
  const auto joiners = number_of(options.joiners);
  if (!joiners || *joiners == 0 || *joiners > most)
    return refused("--joiners", options.joiners, "1 to " + std::to_string(most));
  into.joiners = static_cast<std::uint32_t>(*joiners);
  if (options.workers.empty()) return {};
  const auto workers = number_of(options.workers);
  if (!workers || *workers == 0 || *workers > most)
    return refused("--workers", options.workers, "1 to " + std::to_string(most));
  into.workers = static_cast<std::uint32_t>(*workers);
  return {};
}

expected<void> read_faults(const sim_options& options, sim_plan& into) {
  if (options.faults == "all") {
    for (const auto& one : fault_scenarios())
      into.faults.emplace_back(one.name);
  } else {
    into.faults = words_of(options.faults);
  }
  for (const auto& spec : options.job_faults) {
    auto parsed = parse_fault(spec);
    if (!parsed) return error{errc::bad_argument, "--fault " + spec + ": " + parsed.failure().text};
    into.job_faults.push_back(*parsed);
  }
  if (options.fault_plan.empty()) return {};
  std::ifstream file{options.fault_plan};
  std::string text(plan_bytes_max + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(file.gcount()));
  if (file.bad() || (text.empty() && !file.eof()))
    return refused("--fault-plan", options.fault_plan, "a file that can be read");
  if (text.size() > plan_bytes_max) return refused("--fault-plan", options.fault_plan, "at most 1 MiB");
  auto parsed = parse_fault_plan(text, options.fault_plan);
  if (!parsed) return parsed.failure();
  into.job_faults.insert(into.job_faults.end(), parsed->begin(), parsed->end());
  return {};
}

expected<void> read_workload(const sim_options& options, sim_plan& into) {
  std::string accepted = "any";
  for (const auto& one : built_in_workloads())
    accepted += ", " + one.name;
  into.workloads = words_of(options.workload == "any" ? "softmax,adamw,accumulate" : options.workload);
  for (const auto& name : into.workloads) {
    if (find_workload(name) == nullptr) return refused("--workload", options.workload, accepted);
  }
  if (options.steps.empty()) return {};
  const auto steps = number_of(options.steps);
  if (!steps || *steps == 0 || *steps > steps_max)
    return refused("--steps", options.steps, "1 to " + std::to_string(steps_max));
  into.steps = *steps;
  return {};
}

} // namespace

std::string host_range::text() const {
  return least == most ? std::to_string(least) : std::to_string(least) + ".." + std::to_string(most);
}

layout sim_plan::layout_of(std::uint64_t seed, host_range row) const {
  const counter_rng random{seed, stream_of("layout")};
  const auto count = row.least + static_cast<std::uint32_t>(random.bits(0) % (row.most - row.least + 1));
  if (workers != 0) return {count, workers, joiners};
  const auto least = (count - 1) * joiners + 1;
  if (least >= small_workers_max) return {count, least, joiners};
  const auto more = static_cast<std::uint32_t>(random.bits(1) % more_workers_max);
  return {count, std::min(least + more, small_workers_max), joiners};
}

const std::string& sim_plan::workload_of(std::uint64_t seed, layout where) const {
  static const std::string for_many{wide};
  if (where.workers > small_workers_max && workloads.size() > 1) return for_many;
  return workloads[counter_rng{seed, stream_of("layout")}.bits(2) % workloads.size()];
}

expected<sim_plan> plan_of(const sim_options& options) {
  sim_plan plan;
  const auto seeds = range_of(options.seeds);
  if (!seeds || seeds->last - seeds->first >= seeds_max)
    return refused("--seeds", options.seeds,
                   "A..B with A at most B, or one number; at most " + std::to_string(seeds_max) + " of them");
  plan.first = seeds->first;
  plan.last = seeds->last;
  for (auto* read : {read_hosts, read_faults, read_workload}) {
    if (auto valid = read(options, plan); !valid) return valid.failure();
  }
  return plan;
}

} // namespace troupe::sim
