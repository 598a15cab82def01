// Edge director -> reporter: what happened in the job, as values. No credit: the director speaks on changes
// only (at most a few records a second), and the reporter never answers.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "runtime/base/error.hpp"
#include "runtime/base/ids.hpp"
#include "runtime/base/time.hpp"
#include "runtime/policy/failure.hpp"
#include "runtime/wire/control.hpp"

namespace troupe::job_record {

struct worker_started {
  std::uint32_t slot{0};
  std::int64_t pid{0};
};
struct worker_ready {
  std::uint32_t slot{0};
  std::int64_t pid{0};
  std::string device;
};
// Between the director and a worker: what the transport chose.
struct path_opened {
  std::uint32_t slot{0};
  std::int64_t pid{0};
  std::string lanes; // "tcp/lo"
};
struct resume_found {
  std::optional<step_id> step; // none: from nothing
  std::string checkpoint;
};
struct checkpoint_rejected {
  step_id step;
  std::string cause;
};
struct generation_started {
  generation_id generation;
  step_id step;
  std::uint32_t world{0};
  std::string collective{};     // "shm", "ring", "shm+ring"; empty: there is only one
  std::string collective_why{}; // where hosts are spanned, but not in two levels
};
struct first_step_applied {
  generation_id generation;
  step_id step;
};
struct generation_ended {
  generation_id generation;
  std::string cause;
};
struct collective_aborted {
  generation_id generation;
  std::uint32_t slot{0};
  step_id applied;
};
struct state_sent {
  generation_id generation;
  std::uint32_t slot{0};
  step_id step;
  wire::state_source source{wire::state_source::fresh};
};
// `number` counts the failures of the job from 0; `failure_recovered` refers to it.
struct failure_detected {
  std::size_t number{0};
  std::uint32_t slot{0};
  failure what;
  std::string actor; // empty: the process
};
struct failure_recovered {
  std::size_t number{0};
  time_point at;
  std::uint64_t steps_lost{0};
  std::string source; // peer, memory, disk, none
};
// The sum of a step was not finite; it is computed again.
struct step_refused {
  std::optional<rank_id> rank; // whose gradient it was, where it was one rank's
  step_id step;
  std::string cause;
};
// A path to a worker failed, and is being opened again.
struct path_interrupted {
  std::uint32_t slot{0};
  std::string cause;
};
struct straggler {
  std::uint32_t slot{0};
  step_id step;
  std::string cause;
};
struct resize {
  std::string cause;
};
struct survivor_killed {
  std::uint32_t slot{0};
  std::string cause;
};
struct progressed {
  generation_id generation;
  wire::step_report report;
  std::uint32_t world{0};
};
struct checkpoint {
  std::uint32_t slot{0};
  wire::checkpoint_report report;
};
struct budget_spent {
  std::string cause;
};
struct job_finished {
  std::optional<error> cause;                 // none: all steps done
  std::vector<wire::worker_finished> workers; // in rank order, empty where the job did not get that far
  generation_id generation;
  std::uint32_t world{0};
  std::uint64_t restarts{0};
  step_id newest; // applied, as far as known
};

} // namespace troupe::job_record

namespace troupe {

using job_record_variant =
    std::variant<job_record::worker_started, job_record::worker_ready, job_record::path_opened,
                 job_record::resume_found, job_record::checkpoint_rejected, job_record::generation_started,
                 job_record::first_step_applied, job_record::generation_ended, job_record::collective_aborted,
                 job_record::state_sent, job_record::failure_detected, job_record::failure_recovered,
                 job_record::step_refused, job_record::path_interrupted, job_record::straggler,
                 job_record::resize, job_record::survivor_killed, job_record::progressed,
                 job_record::checkpoint, job_record::budget_spent, job_record::job_finished>;

} // namespace troupe
