#include "cli/sim/simulator.hpp"

#include <algorithm>

#include "cli/sim/conversation.hpp"
#include "cli/sim/timeline.hpp"
#include "runtime/base/limits.hpp"

namespace troupe::sim {
namespace {

constexpr std::uint64_t reference_seed = 1;
constexpr std::uint32_t keep_all = 1000;
constexpr std::uint32_t hosts_max = limits::workers_max;

void add_lines(std::string& to, std::string_view title, const std::vector<std::string>& lines) {
  to += std::string{title} + ":\n";
  for (const auto& line : lines)
    to += "  " + line + "\n";
}

run_result converse_as_run(const run_request& request, const std::string& workload) {
  auto played = converse(request.seed);
  return {.request = request,
          .workload = workload,
          .findings = std::move(played.findings),
          .trace_digest = std::move(played.trace_digest),
          .events = played.events,
          .messages = played.messages,
          .virtual_time = played.virtual_time,
          .strikes = played.struck.size(),
          .timeline = std::move(played.struck),
          .log = std::move(played.log)};
}

expected<void> check_layout(layout where, const workload& what) {
  const auto text = "hosts " + std::to_string(where.hosts) + ", workers " + std::to_string(where.workers) +
                    (where.joiners == 1 ? "" : ", joiners " + std::to_string(where.joiners));
  const bool hosts = where.hosts >= 1 && where.hosts <= hosts_max && where.joiners >= 1;
  if (!hosts || where.workers < 1 || where.workers < where.external())
    return error{errc::bad_argument, text + ": accepted: 1 to " + std::to_string(hosts_max) +
                                         " hosts, and the joiners of each host but the first at least"};
  if (where.workers > what.settings.shards)
    return error{errc::bad_argument, text + ": workload '" + what.name + "' has " +
                                         std::to_string(what.settings.shards) +
                                         " shards; accepted: at most as many workers"};
  return {};
}

} // namespace

std::string replay_command(const run_request& what, const std::string& workload) {
  return "troupe sim --seeds " + std::to_string(what.seed) + " --hosts " + std::to_string(what.where.hosts) +
         " --workers " + std::to_string(what.where.workers) +
         (what.where.joiners == 1 ? "" : " --joiners " + std::to_string(what.where.joiners)) +
         " --workload " + workload + " --faults " + what.faults;
}

std::string run_result::replay() const {
  return replay_command(request, workload) + options;
}

std::string run_result::report() const {
  std::string text = "replay: " + replay() + "\nversion: " TROUPE_VERSION ", trace: " + trace_digest + "\n";
  add_lines(text, "findings", findings);
  add_lines(text, "what happened", timeline);
  add_lines(text, "log", log);
  return text;
}

simulator::simulator(workload what)
    : workload_{std::move(what)} {}

void simulator::add_invariant(std::string name, invariant_check check) {
  checks_.push_back({std::move(name), std::move(check)});
}

void simulator::add_fault(std::string name, mishap strike) {
  mishaps_.push_back({std::move(name), std::move(strike)});
}

expected<void> simulator::prepare(layout where) {
  if (samples_ == nullptr) {
    if (auto valid = check_workload(workload_); !valid) return valid;
    auto data = open_data(workload_);
    if (!data) return data.failure();
    samples_ = std::make_shared<const sample_contents>(contents_of(**data));
  }
  return check_layout(where, workload_);
}

expected<reference> simulator::known(layout where) {
  if (auto ready = prepare(where); !ready) return ready.failure();
  const auto [place, fresh] = known_.try_emplace(where);
  if (!fresh) return place->second;
  auto what = workload_;
  what.settings.keep = keep_all;
  what.settings.faults.clear();
  cluster quiet{reference_seed, what, where, samples_};
  quiet.start_director();
  (void)quiet.run({}); // what it lacks is found missing by the checkers
  place->second = reference_of(quiet);
  return place->second;
}

std::string simulator::replay_options() const {
  std::string text;
  const auto* usual = find_workload(workload_.name);
  if (usual != nullptr && usual->steps() != workload_.steps())
    text += " --steps " + std::to_string(workload_.steps());
  for (const auto& one : job_faults_)
    text += " --fault " + to_text(one);
  return text;
}

expected<fault_scenario> simulator::scenario_of(const std::string& name) const {
  if (const auto* found = find_scenario(name)) return *found;
  std::string accepted;
  for (const auto& one : fault_scenarios())
    accepted += (accepted.empty() ? "" : ", ") + std::string{one.name};
  for (const auto& one : mishaps_) {
    if (one.name == name) return fault_scenario{one.name, "a fault of the user's own"};
    accepted += ", " + one.name;
  }
  return error{errc::bad_argument, "--faults " + name + ": unknown; accepted: " + accepted};
}

expected<run_result> simulator::run(const run_request& request) {
  const auto scenario = scenario_of(request.faults);
  if (!scenario) return scenario.failure();
  if (request.faults == conversation_scenario) return converse_as_run(request, workload_.name);
  const auto right = known(request.where);
  if (!right) return right.failure();
  strikes struck{*scenario, request.seed, right->events, workload_, request.where, mishaps_};
  const auto own = std::ranges::find(mishaps_, request.faults, &named_mishap::name);
  if (own != mishaps_.end()) struck.plan(own->strike, struck.any_time());

  auto what = workload_;
  what.settings.faults = job_faults_;
  what.settings.faults.insert(what.settings.faults.end(), struck.job_faults().begin(),
                              struck.job_faults().end());
  cluster job{request.seed, what, request.where, samples_};
  struck.arm(job);
  job.start_director();
  (void)job.run([&struck](cluster& in) { struck(in); });

  const auto& world = job.machine().world;
  run_result result{.request = request,
                    .workload = workload_.name,
                    .options = replay_options(),
                    .findings = check(job, *right, struck.expected()),
                    .trace_digest = world.trace_digest(),
                    .events = world.events(),
                    .messages = job.machine().network.messages(),
                    .virtual_time = world.now().time_since_epoch(),
                    .recomputed = job.samples().recomputed(),
                    .strikes = struck.told().size(),
                    .event_lines = job.events(),
                    .timeline = {},
                    .log = job.machine().log};
  for (const auto& one : checks_) {
    for (const auto& text : one.check(job))
      result.findings.push_back(one.name + ": " + text);
  }
  if (!result.right()) result.timeline = timeline_of(job, struck.told());
  return result;
}

} // namespace troupe::sim
