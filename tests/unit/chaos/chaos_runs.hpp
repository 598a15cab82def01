// Results of runs, made by hand, for the tests of verdict and report.
#pragma once

#include "cli/chaos/chaos_verdict.hpp"

namespace troupe::chaos {

using namespace std::chrono_literals;

inline nlohmann::json summary(const std::string& digest) {
  return {{"state_digest", digest}, {"weights_digest", "w" + digest},
          {"steps_committed", 100}, {"goodput", 0.9},
          {"restarts", 1},          {"generations", 2}};
}

inline run_result calm_result() {
  run_result run;
  run.attempts.push_back(
      {0s,
       0s,
       10s,
       {},
       {{{"t", 0.0}, {"event", "job_started"}, {"workers", 3}}, {{"t", 9.0}, {"event", "job_finished"}}}});
  run.summary = summary("aa");
  run.wall = 10s;
  run.at_most.worker = {20, 50 << 20};
  run.at_most.director = {30, 40 << 20};
  run.at_end = run.at_most;
  return run;
}

inline strike inside(const std::string& spec) {
  const auto parsed = parse_fault(spec);
  strike one{.kind = std::string{to_string(parsed->kind)}, .at = parsed->when.time, .inside = *parsed};
  if (parsed->target.where == fault_target::place::worker)
    one.rank = static_cast<std::uint32_t>(parsed->target.number);
  return one;
}

inline nlohmann::json detected(double t, int rank, double after_ms,
                               const std::string& cause = "killed by SIGKILL") {
  return {
      {"t", t}, {"event", "failure_detected"}, {"rank", rank}, {"detected_ms", after_ms}, {"cause", cause}};
}

inline nlohmann::json resumed(double t, int rank, double after_ms) {
  return {{"t", t}, {"event", "resumed"}, {"rank", rank}, {"recovered_ms", after_ms}};
}

// Struck three times: a kill that was seen and healed, a stop that was not noticed, one that did not come.
inline run_result struck_result() {
  auto run = calm_result();
  run.plan = {inside("stop:worker=1@after=1s,for=200ms"), inside("kill:worker=1@after=2s"),
              inside("kill:worker=0@after=30s")};
  run.struck.resize(run.plan.size());
  auto& events = run.attempts[0].events;
  events.insert(events.begin() + 1, detected(2.03, 1, 25));
  events.insert(events.begin() + 2, resumed(2.2, 1, 190));
  return run;
}

} // namespace troupe::chaos
