// Job report: turns what happened into events, a summary, and what a person reads while the job runs.
//
// Flow:     director -> job records -> [job report] -> event log, progress line, summary
// Owns:     the summary under construction, the failures' times, the best-known loss and rate.
// Runs on:  the reporter's actor, on the event loop; the sinks never block.
// Invariants:
//   JR-1    every failure that was detected is in the summary, recovered or not.
//   JR-2    a summary can be written at any moment, whatever the end is.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "actors/contracts/job_records.hpp"
#include "runtime/seams/clock.hpp"
#include "runtime/telemetry/event_log.hpp"
#include "runtime/telemetry/goodput.hpp"
#include "runtime/telemetry/progress_line.hpp"
#include "runtime/telemetry/rate_meter.hpp"
#include "runtime/telemetry/summary.hpp"

namespace troupe {

struct job_report_settings {
  std::string program;
  std::string version;
  std::uint64_t seed{1};
  std::uint32_t shards{1};
  std::uint32_t workers{1};
  std::uint64_t samples_per_step{1};
  std::uint64_t steps_total{0};
};

class job_report {
public:
  // Clock and sinks outlive the report.
  job_report(job_report_settings settings, const clock_seam& clock, text_sink& events, text_sink& people,
             progress_line::style style);

  void begin(const std::string& endpoint); // the job starts; where its workers join
  void on_record(const job_record_variant& what);
  // The state of the summary now; `exit_reason` says how it ended, or that it has not.
  [[nodiscard]] job_summary summary() const;
  [[nodiscard]] std::optional<double> accuracy() const { return summary_.accuracy; }

private:
  void hear(const job_record::worker_started& r);
  void hear(const job_record::worker_ready& r);
  void hear(const job_record::path_opened& r);
  void hear(const job_record::resume_found& r);
  void hear(const job_record::checkpoint_rejected& r);
  void hear(const job_record::generation_started& r);
  void hear(const job_record::first_step_applied& r);
  void hear(const job_record::generation_ended& r);
  void hear(const job_record::collective_aborted& r);
  void hear(const job_record::state_sent& r);
  void hear(const job_record::failure_detected& r);
  void hear(const job_record::failure_recovered& r);
  void hear(const job_record::step_refused& r);
  void hear(const job_record::path_interrupted& r);
  void hear(const job_record::straggler& r);
  void hear(const job_record::resize& r);
  void hear(const job_record::survivor_killed& r);
  void hear(const job_record::progressed& r);
  void hear(const job_record::checkpoint& r);
  void hear(const job_record::budget_spent& r);
  void hear(const job_record::job_finished& r);

  struct known_failure {
    failure what;
    std::uint32_t slot{0};
    std::string actor;
  };
  [[nodiscard]] failure_story story_of(const known_failure& from, const failure_summary& numbers) const;

  job_report_settings settings_;
  const clock_seam& clock_;
  event_log events_;
  progress_line people_;
  time_point started_;
  job_summary summary_;
  std::vector<known_failure> failures_;
  generation_id generation_;
  rate_meter rate_;
  duration in_steps_before_{0}; // of ended generations
  duration in_steps_now_{0};
  std::uint64_t step_at_start_{0}; // of the current generation
  std::uint64_t newest_step_{0};
  std::optional<std::uint64_t> resumed_from_; // where this run of the program began
  bool ended_{false};
};

} // namespace troupe
