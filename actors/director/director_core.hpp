// Director: decides who is in the job and from where it goes on; starts, watches and replaces workers.
//
// Flow:     worker messages, process exits, joins, time -> [director] -> worker messages, signals, records
// Owns:     the membership, the failure detector, the restart budgets, what is known of each slot's process.
// Runs on:  its actor, on the event loop; never blocks (files are asked for through its ports).
// Fails:    the job ends with one error; every worker is stopped first.
// Invariants:
//   DI-1    every loss passes through `lose`, once per process: root cause, budget, membership, in order.
//   DI-2    a message is heard only from the incarnation that its slot has now.
//   DI-3    a condemned process is SIGKILLed before a replacement is started: it cannot come back.
//   DI-4    the job is over only when every child has been reaped.
//   DI-5    a generation starts only when the journal has it: a successor's generations are newer.
// Why:      docs/design/0008-membership.md
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "actors/contracts/job_records.hpp"
#include "runtime/policy/accusations.hpp"
#include "runtime/policy/backoff.hpp"
#include "runtime/policy/failure_detector.hpp"
#include "runtime/policy/fault_plan.hpp"
#include "runtime/policy/membership.hpp"
#include "runtime/policy/restart_intensity.hpp"
#include "runtime/policy/timeouts.hpp"
#include "runtime/seams/collective.hpp"
#include "runtime/seams/process.hpp"
#include "runtime/seams/rendezvous.hpp"
#include "runtime/telemetry/flight_dump.hpp"
#include "runtime/wire/control.hpp"

namespace troupe {

// What the director asks of its surroundings. All calls return at once.
class director_ports {
public:
  virtual ~director_ports() = default;
  [[nodiscard]] virtual time_point now() const = 0;
  [[nodiscard]] virtual std::uint64_t random() = 0;
  virtual void call_after(duration delay, task work) = 0;
  virtual void send(incarnation_id to, const wire::control& message) = 0;
  virtual expected<void> connect(incarnation_id to, const peer_address& address) = 0;
  virtual void close(incarnation_id to, const error& cause) = 0; // forget the peer
  // What carries the open path to a peer ("tcp/lo"); empty: not known.
  [[nodiscard]] virtual std::string lanes(incarnation_id) const { return {}; }
  virtual expected<child_process> start_process(std::uint32_t slot, process_exit_handler on_exit) = 0;
  virtual void signal(std::int64_t pid, int signal_number) = 0;
  virtual void find_resume_point() = 0; // answered by `on_resume_point`
  // What a generation's members sum in. Returns the descriptor.
  [[nodiscard]] virtual expected<std::string> prepare_collective(generation_id generation,
                                                                 std::vector<collective_member> members) = 0;
  // Of what was prepared last: its kind, and why it is no better one (collective.hpp).
  [[nodiscard]] virtual std::string collective_kind() const { return {}; }
  [[nodiscard]] virtual std::string collective_why() const { return {}; }
  // For the journal; `durable` is called once a successor would know (or cannot be told).
  virtual void generation_changed(generation_id generation, const fired_faults& fired, task durable) = 0;
  // Writes the last calls of a rank from its black box, where the job keeps them: all but `now` and
  // `arrivals` is said.
  virtual void keep_flight(const flight_header&, std::shared_ptr<const black_box>) {}
  virtual void record(job_record_variant what) = 0;
  virtual void over(const std::optional<error>& cause) = 0; // nothing of the job is left
};

struct director_settings {
  membership_settings members;
  timeouts limits;
  intensity_policy intensity; // of each slot
  backoff_policy restart_backoff;
  fault_plan faults;
  fired_faults fired_before;       // in an earlier life of the job
  generation_id generation_before; // of an earlier life of the job
};

class director_core {
public:
  director_core(director_settings settings, director_ports& ports);

  void start();
  [[nodiscard]] expected<void> on_offer(const join_offer& offer); // errc::refused says why
  void on_message(incarnation_id from, const wire::control& message);
  void on_path_lost(incarnation_id who, const error& cause);
  void on_path_interrupted(incarnation_id who, const error& cause); // told, nothing else
  void on_resume_point(const std::vector<job_record::checkpoint_rejected>& rejected,
                       expected<resume_point> found);
  void on_tick();
  // The user wants the job to end (a signal): stops everything, then `over`.
  void stop(const error& cause);
  // Somebody asks for the last calls of all ranks; also of one that hangs or stands still.
  void keep_flights();

  [[nodiscard]] std::uint64_t newest_step() const; // applied by anyone, as far as known
  [[nodiscard]] const fired_faults& fired() const { return fired_; }
  [[nodiscard]] const membership& members() const { return members_; }

private:
  struct slot_process {
    std::int64_t pid{0};
    std::shared_ptr<const black_box> box;
    std::optional<incarnation_id> who;
    peer_address address;
    std::string machine;
    std::string device;
    bool ready{false};
    bool child{false}; // ours to reap
    std::optional<failure_kind> condemned;
    std::string condemned_text;
    time_point condemned_at;
    std::uint64_t fault_seen{0};         // newest strike noted: its time
    std::optional<time_point> struck_at; // killed by us for a fault that strikes all
    restart_intensity budget;
    backoff pause;
    std::optional<wire::worker_finished> finished;
  };
  struct refusal {
    std::uint32_t slot;
    bool ours; // its own contribution was not finite
  };
  struct open_failure {
    std::size_t number;
    std::uint32_t slot;
    std::uint64_t step_started;
    bool local;
    generation_id generation; // that it ended, or happened in
  };

  void apply(membership::outputs actions);
  void act(const membership_action::start_process& action);
  void act(const membership_action::kill_process& action);
  void act(const membership_action::end_generation& action);
  void act(const membership_action::find_resume_point& action);
  void act(const membership_action::prepare_generation& action);
  void act(const membership_action::start_generation& action);
  void act(const membership_action::finish_job& action);

  void hear(std::uint32_t slot, const wire::worker_ready& m);
  void hear(std::uint32_t slot, const wire::heartbeat& m);
  void hear(std::uint32_t slot, const wire::generation_prepared& m);
  void hear(std::uint32_t slot, const wire::prepare_failed& m);
  void hear(std::uint32_t slot, const wire::generation_stopped& m);
  void hear(std::uint32_t slot, const wire::actor_failed& m);
  void hear(std::uint32_t slot, const wire::step_refused& m);
  void hear(std::uint32_t slot, const wire::fault_struck& m);
  void hear(std::uint32_t slot, const wire::peer_unreachable& m);
  void hear(std::uint32_t slot, const wire::first_step& m);
  void hear(std::uint32_t slot, const wire::step_report& m);
  void hear(std::uint32_t slot, const wire::checkpoint_report& m);
  void hear(std::uint32_t slot, const wire::worker_finished& m);
  template <class Other>
  void hear(std::uint32_t, const Other&) {} // not for a director: dropped

  void journaled(generation_id generation);
  void announce_start(const membership_action::start_generation& action);
  void launch(std::uint32_t slot);
  void on_exit(std::uint32_t slot, const process_exit& exit);
  void lose(std::uint32_t slot, failure what);
  // Counts, reports, and checks the budgets; false when the job ends because of it.
  [[nodiscard]] bool admit(std::uint32_t slot, failure& what, const std::string& actor, bool local,
                           errc repeated = errc::budget_spent);
  void refuse_step(step_id step);
  void condemn(std::uint32_t slot, failure_kind kind, std::string text);
  void keep_flight(std::uint32_t slot, flight_writer by, const std::string& cause);
  void expect_ready(std::uint32_t slot, duration within, failure_kind otherwise, const std::string& text);
  void judge(const verdict& what);
  void hear_aborted(std::uint32_t slot, const wire::actor_failed& m);
  void judge_aborted_later(generation_id generation);
  void judge_aborted(generation_id generation);
  void judge_unreachable_later(generation_id generation);
  void judge_unreachable(generation_id generation);
  std::optional<std::size_t> note_fault(std::uint32_t slot); // a new strike: its place in the plan
  // When that strike was, if it is one that has to be healed.
  [[nodiscard]] std::optional<time_point> felt(std::uint32_t slot, std::optional<std::size_t> strike) const;
  void strike_all_but(std::uint32_t slot, std::size_t fault);
  void look_for_strikes(std::uint32_t slot);
  [[nodiscard]] std::string fired_text() const; // what has struck, for workers
  [[nodiscard]] time_point lived() const;
  [[nodiscard]] bool beats(std::uint32_t slot) const;
  void check_replicas();
  void stop_workers(const std::string& cause);
  void check_over();
  [[nodiscard]] std::optional<std::uint32_t> slot_of(incarnation_id who) const;
  [[nodiscard]] std::string source_of(std::uint32_t slot) const;
  [[nodiscard]] rank_id rank_of(std::uint32_t slot) const;

  director_settings settings_;
  director_ports& ports_;
  membership members_;
  failure_detector detector_;
  same_failure_guard guard_;
  std::vector<slot_process> slots_;
  fired_faults fired_;
  std::vector<open_failure> open_failures_;
  std::vector<refusal> refusals_; // of this generation's step in flight, until everybody has said so
  accusations apart_;             // of members of this generation
  // By slot, what collectives said in this generation.
  std::map<std::uint32_t, wire::actor_failed> aborted_;
  std::size_t failures_{0};
  std::uint64_t restarts_{0};
  std::uint64_t newest_step_{0};
  generation_id started_;     // the newest generation that was told to start
  generation_id progressing_; // the newest generation that has applied a step
  time_point last_beat_;
  generation_id journaled_;
  std::optional<membership_action::start_generation> held_start_; // until it is in the journal (DI-5)
  time_point held_since_;
  bool stopping_{false};
  bool over_{false};
  time_point stop_deadline_;
  std::optional<error> end_cause_;
};

} // namespace troupe
