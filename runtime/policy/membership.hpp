// Membership: who is in the job, under which generation, and from which state it goes on.
//
// Flow:     events (a member is ready, lost, stopped, prepared, finished; time) -> [membership] -> actions
// Owns:     the slots (one a rank), the generation number, the phase. Nothing else: no I/O, no clock.
// Runs on:  the director's actor.
// Fails:    a job that cannot go on ends with one error (`finish_job` carries it).
//
// The one cycle, for a start, a failure and a resize alike:
//
//   assembling --all slots ready and idle--> choosing --resume point known--> preparing
//       ^                                                                         |
//       |  a member was lost, failed or joined: the generation ends               | all prepared
//       +------------------------------ running <---------------------------------+
//                                          | all finished
//                                         done
//
// Invariants:
//   MS-1    generations only grow, and only `prepare` moves them.
//   MS-2    a generation starts only when every member of it has prepared the same step.
//   MS-3    when any idle member holds state, the job goes on from the newest step held: no rollback.
//   MS-4    every member of an ended generation is idle, or gone, before the next is prepared.
//   MS-5    answers that name another generation than the current one change nothing.
//   MS-6    who gets the state from a peer ends a chain of peers that begins with one who keeps it.
// Why:      docs/design/0008-membership.md
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "runtime/base/error.hpp"
#include "runtime/base/ids.hpp"
#include "runtime/base/time.hpp"

namespace troupe {

struct membership_settings {
  std::uint32_t slots{1};          // launched by the director itself
  std::uint32_t external_slots{0}; // filled by processes that join from outside
  std::uint32_t workers_min{1};
  std::string machine{};                 // the director's, as in join_offer: who is there has the first ranks
  duration join_deadline{0};             // start of a process to its `on_ready`
  duration answer_deadline{0};           // end_generation or prepare to the member's answer
  duration replacement_wait{0};          // how long an external slot may stay empty
  std::uint32_t prepare_attempts_max{5}; // in a row, without a generation that ran
};

enum class member_source : unsigned char { keep, peer, checkpoint, fresh };

struct generation_member {
  std::uint32_t slot{0};
  incarnation_id incarnation;
  member_source source{member_source::fresh};
  rank_id source_rank;   // for `peer`: who keeps the state, or gets it from a peer itself and passes it on
  std::uint32_t host{0}; // rank_order.hpp; 0: the director's
};

struct generation_plan {
  generation_id generation;
  step_id step;                           // what every member holds before the start
  std::string checkpoint;                 // directory of the version, where a source is `checkpoint`
  std::vector<generation_member> members; // in rank order, those of one host after one another
};

// What the storage holds: the newest verified version, or nothing.
struct resume_point {
  step_id step;
  std::string checkpoint; // empty: fresh
};

namespace membership_action {
struct start_process {
  std::uint32_t slot;
};
struct kill_process {
  std::uint32_t slot;
  std::string cause;
};
struct end_generation {
  generation_id generation;
  std::vector<incarnation_id> members;
  std::string cause;
};
struct find_resume_point {};
struct prepare_generation {
  generation_plan plan;
};
struct start_generation {
  generation_id generation;
  std::vector<incarnation_id> members;
};
struct finish_job {
  std::optional<error> cause; // none: all steps done
};
} // namespace membership_action

using membership_output =
    std::variant<membership_action::start_process, membership_action::kill_process,
                 membership_action::end_generation, membership_action::find_resume_point,
                 membership_action::prepare_generation, membership_action::start_generation,
                 membership_action::finish_job>;

class membership {
public:
  enum class phase : unsigned char { assembling, choosing, preparing, running, done };
  using outputs = std::vector<membership_output>;

  // Generations go on from `before`: the last one of the job's earlier life, 0 for a new job.
  explicit membership(membership_settings settings, generation_id before = {});

  [[nodiscard]] outputs start(time_point now);
  // A process of `slot`, on `machine`, is connected and can take part. It holds nothing yet.
  [[nodiscard]] outputs on_ready(std::uint32_t slot, incarnation_id who, time_point now,
                                 std::string machine = {});
  // The process is gone (exit, lease, path): whatever it held is lost.
  [[nodiscard]] outputs on_lost(std::uint32_t slot, const std::string& cause, time_point now);
  // The process lives, but its worker failed and lost its state; it answers `on_stopped` as any other.
  [[nodiscard]] outputs on_worker_failed(incarnation_id who, const std::string& cause, time_point now);
  // The step in flight was refused, or its sum failed: all begin again, with what they hold.
  [[nodiscard]] outputs on_step_refused(const std::string& cause, time_point now);
  [[nodiscard]] outputs on_stopped(incarnation_id who, generation_id ended, step_id applied, bool holds_state,
                                   time_point now);
  [[nodiscard]] outputs on_resume_point(expected<resume_point> found, time_point now);
  [[nodiscard]] outputs on_prepared(incarnation_id who, generation_id prepared, step_id step, time_point now);
  [[nodiscard]] outputs on_prepare_failed(incarnation_id who, generation_id failed, const error& cause,
                                          time_point now);
  [[nodiscard]] outputs on_finished(incarnation_id who, generation_id finished);
  [[nodiscard]] outputs on_tick(time_point now);
  // Ends the job for a reason that membership itself cannot see (budget spent, a refused digest).
  [[nodiscard]] outputs end(error cause);

  [[nodiscard]] phase current_phase() const { return phase_; }
  [[nodiscard]] generation_id generation() const { return generation_; }
  [[nodiscard]] const generation_plan& plan() const { return plan_; }
  [[nodiscard]] std::optional<std::uint32_t> slot_of(incarnation_id who) const;
  [[nodiscard]] std::optional<rank_id> rank_of(incarnation_id who) const; // in the current plan
  [[nodiscard]] std::uint32_t joined() const;
  // A slot for a process that joins from outside, if one is empty.
  [[nodiscard]] std::optional<std::uint32_t> free_external_slot() const;

private:
  struct slot {
    bool external{false};
    bool joined{false};
    incarnation_id incarnation;
    std::string machine;
    time_point since; // of the current wait: start, join, end or prepare
    bool idle{false};
    bool holds_state{false};
    step_id applied;
    bool prepared{false};
    bool finished{false};
  };

  [[nodiscard]] slot* find(incarnation_id who);
  [[nodiscard]] std::vector<incarnation_id> members_joined() const;
  void end_generation(const std::string& cause, time_point now, outputs& out);
  void advance(time_point now, outputs& out);
  void choose(outputs& out);
  void prepare(const resume_point& from, time_point now, outputs& out);
  void add_members();
  [[nodiscard]] bool assembled(time_point now);

  membership_settings settings_;
  std::vector<slot> slots_;
  phase phase_{phase::assembling};
  generation_id generation_;
  generation_plan plan_;
  std::uint32_t prepare_failures_{0};
  bool ended_sent_{true}; // the current generation has been ended, or never was prepared
};

} // namespace troupe
