#include "cli/sim/sim_command.hpp"

#include <array>
#include <cstdio>
#include <ctime>
#include <map>
#include <ostream>

#include <nlohmann/json.hpp>

#include "cli/sim/coverage.hpp"
#include "cli/sim/sim_plan.hpp"

namespace troupe {
namespace {

constexpr int exit_right = 0;
constexpr int exit_wrong = 1;
constexpr int exit_usage = 2;

// All runs of one fault scenario and one number of hosts.
struct row {
  std::string faults;
  std::string hosts;
  std::uint64_t runs{0};
  std::uint64_t wrong{0};
  std::uint64_t strikes{0};
  std::uint64_t events{0};
  std::uint64_t messages{0};
  double virtual_s{0};
  double processor_s{0};
  digest_builder traces;
  nlohmann::json failures = nlohmann::json::array();

  [[nodiscard]] double us_per_message() const {
    return messages == 0 ? 0 : processor_s * 1e6 / static_cast<double>(messages);
  }
};

double processor_seconds() {
  return static_cast<double>(std::clock()) / CLOCKS_PER_SEC;
}

void count(row& into, const sim::run_result& result, const sim_options& options, std::ostream& err) {
  ++into.runs;
  into.strikes += result.strikes;
  into.events += result.events;
  into.messages += result.messages;
  into.virtual_s += to_s(result.virtual_time);
  into.traces.add(std::as_bytes(std::span{result.trace_digest}));
  if (result.right()) return;
  ++into.wrong;
  into.failures.push_back({{"replay", result.replay()},
                           {"trace", result.trace_digest},
                           {"findings", result.findings},
                           {"timeline", result.timeline}});
  if (!options.json) err << result.report() << std::flush;
}

std::string text_of(const row& sums) {
  std::array<char, 256> text{};
  std::snprintf(
      text.data(), text.size(),
      "%s, hosts %s: %llu runs, %llu wrong, %llu strikes, %.0f s simulated in %.1f s, %llu messages at "
      "%.1f us, trace %s",
      sums.faults.c_str(), sums.hosts.c_str(), static_cast<unsigned long long>(sums.runs),
      static_cast<unsigned long long>(sums.wrong), static_cast<unsigned long long>(sums.strikes),
      sums.virtual_s, sums.processor_s, static_cast<unsigned long long>(sums.messages), sums.us_per_message(),
      sums.traces.finish().c_str());
  return text.data();
}

nlohmann::json json_of(const row& sums) {
  return {{"faults", sums.faults},
          {"hosts", sums.hosts},
          {"runs", sums.runs},
          {"wrong", sums.wrong},
          {"strikes", sums.strikes},
          {"events", sums.events},
          {"messages", sums.messages},
          {"us_per_message", sums.us_per_message()},
          {"virtual_s", sums.virtual_s},
          {"processor_s", sums.processor_s},
          {"trace", sums.traces.finish()},
          {"failures", sums.failures}};
}

class session {
public:
  session(const sim_options& options, const sim::sim_plan& plan, std::ostream& err)
      : options_{options}
      , plan_{plan}
      , err_{err} {}

  [[nodiscard]] expected<row> run(const std::string& faults, sim::host_range hosts) {
    row sums{.faults = faults, .hosts = hosts.text()};
    const auto began = processor_seconds();
    for (auto seed = plan_.first; seed <= plan_.last; ++seed) {
      const auto where = plan_.layout_of(seed, hosts);
      const auto result = simulator_of(plan_.workload_of(seed, where)).run({seed, where, faults});
      if (!result) return result.failure();
      count(sums, *result, options_, err_);
    }
    sums.processor_s = processor_seconds() - began;
    return sums;
  }

private:
  sim::simulator& simulator_of(const std::string& name) {
    const auto found = simulators_.find(name);
    if (found != simulators_.end()) return found->second;
    auto what = *sim::find_workload(name);
    if (plan_.steps != 0) what.settings.steps = plan_.steps;
    auto& made = simulators_.emplace(name, sim::simulator{what}).first->second;
    made.set_job_faults(plan_.job_faults);
    return made;
  }

  const sim_options& options_;
  const sim::sim_plan& plan_;
  std::ostream& err_;
  std::map<std::string, sim::simulator> simulators_;
};

} // namespace

int run_sim(const sim_options& options, std::ostream& out, std::ostream& err) {
  const auto plan = sim::plan_of(options);
  if (!plan) {
    err << "troupe sim: " << plan.failure().text << "\n";
    return exit_usage;
  }
  session all{options, *plan, err};
  nlohmann::json rows = nlohmann::json::array();
  std::uint64_t wrong = 0;
  for (const auto& faults : plan->faults) {
    for (const auto hosts : plan->hosts) {
      const auto sums = all.run(faults, hosts);
      if (!sums) {
        err << "troupe sim: " << sums.failure().text << "\n";
        return exit_usage;
      }
      wrong += sums->wrong;
      rows.push_back(json_of(*sums));
      if (!options.json) out << text_of(*sums) << "\n" << std::flush;
    }
  }
  nlohmann::json whole{{"sim", rows}, {"wrong", wrong}};
  if (options.coverage) whole["coverage"] = sim::coverage_json();
  if (options.json) out << whole.dump() << "\n";
  if (options.coverage && !options.json) sim::tell_coverage(out);
  const bool covered = !options.coverage || sim::unreached_probes().empty();
  return wrong == 0 && covered ? exit_right : exit_wrong;
}

} // namespace troupe
