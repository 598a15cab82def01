#include "cli/chaos/chaos_verdict.hpp"

#include <algorithm>
#include <csignal>

#include "cli/chaos/event_file.hpp"
#include "runtime/base/units.hpp"

namespace troupe::chaos {
namespace {

// More at the end than the fault-free run's most, by this much, is a leak.
constexpr std::uint64_t descriptors_more = 16;
constexpr std::uint64_t resident_more = std::uint64_t{64} << 20;
constexpr double attribution_slack_s = 0.05; // two clocks: the job's, and ours

bool ended_well(const process_exit& end) {
  return !end.signalled && end.code == 0;
}

double last_moment(const attempt& one) {
  return one.events.empty() ? 0 : number(one.events.back(), "t").value_or(0);
}

// Seconds on the clock of an attempt's events.
double moment_in(const strike& what, const std::optional<duration>& struck, const attempt& one) {
  return to_s(struck ? *struck - one.told.value_or(one.started) : what.at);
}

// What the cause of a failure says when this strike was the reason; empty: nothing that is sure.
std::string mark_of(const strike& one) {
  if (!one.inside) return one.lasting == duration{0} ? "SIGKILL" : "";
  switch (one.inside->kind) {
  case fault_kind::kill:
    return "SIGKILL";
  case fault_kind::segv:
    return "SIGSEGV";
  case fault_kind::exit:
    return "exit code";
  case fault_kind::throw_error:
    return to_text(one);
  default:
    return "";
  }
}

class attribution {
public:
  attribution(const run_result& run, std::vector<strike_outcome>& outcomes)
      : plan_{run.plan}
      , struck_{run.struck}
      , outcomes_{outcomes}
      , owner_(run.plan.size(), false) {}

  std::uint64_t read(const attempt& one) {
    open_.clear();
    std::uint64_t failures = 0;
    for (const auto& event : one.events) {
      const auto name = word(event, "event");
      if (name == "failure_detected") {
        ++failures;
        detected(event, one);
      } else if (name == "resumed") {
        resumed(event);
      }
    }
    return failures;
  }

private:
  struct open_failure {
    double rank;
    std::optional<std::size_t> strike;
  };

  // The last strike at that rank before it whose mark the cause bears; else the last that has no mark.
  [[nodiscard]] std::optional<std::size_t> strike_of(const nlohmann::json& event, const attempt& one) const {
    const auto rank = number(event, "rank");
    const auto t = number(event, "t").value_or(0);
    const auto cause = word(event, "cause");
    std::optional<std::size_t> marked;
    std::optional<std::size_t> unmarked;
    for (std::size_t i = 0; i < plan_.size(); ++i) {
      const bool possible = plan_[i].rank && rank == *plan_[i].rank && outcomes_[i].due && !owner_[i] &&
                            moment_in(plan_[i], struck_[i], one) <= t + attribution_slack_s;
      if (!possible) continue;
      const auto mark = mark_of(plan_[i]);
      if (mark.empty()) unmarked = i;
      if (!mark.empty() && cause.find(mark) != std::string::npos) marked = i;
    }
    return marked ? marked : unmarked;
  }

  void detected(const nlohmann::json& event, const attempt& one) {
    const auto found = strike_of(event, one);
    open_.push_back({number(event, "rank").value_or(-1), found});
    if (!found) return;
    owner_[*found] = true;
    outcomes_[*found].seen = true;
    const auto detected_ms = number(event, "detected_ms");
    if (plan_[*found].inside && detected_ms > 0) outcomes_[*found].detected_ms = detected_ms;
  }

  void resumed(const nlohmann::json& event) {
    const auto rank = number(event, "rank");
    const auto recovered_ms = number(event, "recovered_ms");
    if (!rank || !recovered_ms) return;
    const auto found = std::ranges::find(open_, *rank, &open_failure::rank);
    if (found == open_.end()) return;
    if (found->strike) outcomes_[*found->strike].recovered_ms = recovered_ms;
    open_.erase(found);
  }

  const std::vector<strike>& plan_;
  const std::vector<std::optional<duration>>& struck_;
  std::vector<strike_outcome>& outcomes_;
  std::vector<bool> owner_; // a failure was put down to it
  std::vector<open_failure> open_;
};

bool is_due(const run_result& run, std::size_t index) {
  const auto& one = run.plan[index];
  if (!one.inside) return run.struck[index].has_value();
  if (one.kills_director()) return run.attempts.size() > 1;
  return std::ranges::any_of(
      run.attempts, [&](const attempt& a) { return moment_in(one, std::nullopt, a) <= last_moment(a); });
}

// A director's death is told by its successor's first step.
void note_director_death(const run_result& run, std::vector<strike_outcome>& outcomes) {
  if (run.attempts.size() < 2) return;
  for (std::size_t i = 0; i < run.plan.size(); ++i) {
    if (!run.plan[i].kills_director() || !outcomes[i].due) continue;
    outcomes[i].seen = true;
    for (const auto& event : run.attempts[1].events) {
      if (word(event, "event") != "first_step_applied" || outcomes[i].recovered_ms) continue;
      const auto pause = run.attempts[1].told.value_or(run.attempts[1].started) - run.attempts[0].ended;
      outcomes[i].recovered_ms = to_ms(pause) + number(event, "t").value_or(0) * 1e3;
    }
  }
}

std::string exit_text(const run_result& run) {
  const auto& end = run.attempts.back().end;
  return ended_well(end) ? "0" : end.text();
}

void compare(run_verdict& into, const char* what, const std::string& here, const std::string& calm,
             bool& equal) {
  equal = !here.empty() && here == calm;
  if (!equal)
    into.findings.push_back(std::string{what} + " " + (here.empty() ? "is missing" : here) +
                            ", the fault-free run's is " + calm);
}

void compare_results(run_verdict& into, const reference& calm) {
  const auto& summary = into.result.summary;
  if (summary.is_null()) {
    into.findings.emplace_back("no summary was written");
    return;
  }
  compare(into, "state_digest", word(summary, "state_digest"), calm.state_digest, into.state_equal);
  compare(into, "weights_digest", word(summary, "weights_digest"), calm.weights_digest, into.weights_equal);
  const auto steps = number(summary, "steps_committed").value_or(0);
  if (steps != calm.steps)
    into.findings.push_back("steps_committed " + std::to_string(static_cast<long>(steps)) +
                            ", the fault-free run's is " + std::to_string(static_cast<long>(calm.steps)));
}

void compare_usage(std::vector<std::string>& leaks, const std::string& role, const process_usage& here,
                   const process_usage& calm) {
  if (here.descriptors > calm.descriptors + descriptors_more)
    leaks.push_back("descriptors of a " + role + ": " + std::to_string(here.descriptors) + " at its end, " +
                    std::to_string(calm.descriptors) + " at most in the fault-free run");
  if (here.resident_bytes > calm.resident_bytes + calm.resident_bytes / 2 + resident_more)
    leaks.push_back("memory of a " + role + ": " + format_size(here.resident_bytes) + " at its end, " +
                    format_size(calm.resident_bytes) + " at most in the fault-free run");
}

} // namespace

expected<reference> reference_of(const run_result& run) {
  const auto refuse = [](const std::string& what) {
    return error{errc::bad_argument, "the fault-free run: " + what +
                                         "; accepted: a Troupe program that finishes, with exit code 0"};
  };
  const auto& only = run.attempts.front();
  if (!run.hung.empty()) return refuse("did not end within its time limit");
  if (!ended_well(only.end)) return refuse(only.end.text() + ": " + run.last_line);
  if (run.summary.is_null()) return refuse("wrote no summary");
  reference calm{.state_digest = word(run.summary, "state_digest"),
                 .weights_digest = word(run.summary, "weights_digest"),
                 .steps = number(run.summary, "steps_committed").value_or(0),
                 .wall = run.wall,
                 .goodput = number(run.summary, "goodput").value_or(0),
                 .usage = run.at_most};
  if (calm.state_digest.empty()) return refuse("its summary has no state_digest");
  for (const auto& event : only.events) {
    if (word(event, "event") == "job_started")
      calm.workers = static_cast<std::uint32_t>(number(event, "workers").value_or(0));
  }
  if (calm.workers == 0) return refuse("its events have no job_started with workers");
  if (!run.leaks.empty()) return refuse("left something: " + run.leaks.front());
  calm.length = std::min(run.wall, duration{static_cast<duration::rep>(last_moment(only) * 1e9)});
  return calm;
}

run_verdict judge(std::uint32_t run, run_result result, const reference& calm) {
  run_verdict verdict{.run = run, .result = std::move(result)};
  const auto& what = verdict.result;
  verdict.outcomes.resize(what.plan.size());
  for (std::size_t i = 0; i < what.plan.size(); ++i)
    verdict.outcomes[i].due = is_due(what, i);
  attribution attribute{what, verdict.outcomes};
  for (const auto& one : what.attempts)
    verdict.failures += attribute.read(one);
  note_director_death(what, verdict.outcomes);

  verdict.exit = exit_text(what);
  verdict.restarts = number(what.summary, "restarts");
  verdict.generations = number(what.summary, "generations");
  if (what.attempts.size() == 1) verdict.goodput = number(what.summary, "goodput");
  verdict.leaks = what.leaks;
  if (!what.hung.empty()) {
    verdict.exit = "hung";
    verdict.findings.push_back("did not end within its time limit");
    for (const auto& process : what.hung)
      verdict.findings.push_back("running then: process " + process);
    return verdict;
  }
  if (!ended_well(what.attempts.back().end))
    verdict.findings.push_back(verdict.exit + ": " + what.last_line);
  else
    compare_results(verdict, calm);
  compare_usage(verdict.leaks, "worker", what.at_end.worker, calm.usage.worker);
  compare_usage(verdict.leaks, "director", what.at_end.director, calm.usage.director);
  return verdict;
}

} // namespace troupe::chaos
