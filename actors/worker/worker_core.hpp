// Worker: one rank's part in generations: gets the state, runs the steps, gives the state to others.
//
// Flow:     director messages -> [worker] -> trainer, prefetcher, checkpointer -> reports to the director
// Owns:     the knowledge of what the arena holds (which step, whole or not) and of the current generation.
// Runs on:  its actor, on the event loop; never blocks.
// Fails:    a failure on the device ends the actor (`fail`): its supervisor starts a fresh one, which holds
//           nothing and takes part again from the next generation.
// Invariants:
//   WK-1    `generation_prepared` is sent only when the arena holds the planned step, whole.
//   WK-2    `generation_stopped` is sent only when nothing reads or writes the arena any more.
//   WK-3    messages of another generation than the current one change nothing, except that an end of a
//           generation never joined is answered at once.
//   WK-4    steps begin only when no transfer of the state to a peer is in flight.
//   WK-5    the state is passed on only whole, with the digest that its first source computed.
// Why:      docs/design/0008-membership.md, docs/design/0032-state-for-many.md
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "actors/worker/trainer.hpp"
#include "runtime/checkpoint/checkpoint_writer.hpp"
#include "runtime/data/prefetch_pump.hpp"
#include "runtime/wire/control.hpp"

namespace troupe {

using load_done = std::function<void(expected<checkpoint_metadata>)>;

// What the worker asks of its surroundings. All calls return at once.
class worker_ports {
public:
  virtual ~worker_ports() = default;
  virtual void send_director(const wire::control& message) = 0;
  virtual expected<void> send_peer(const wire::member& to,
                                   const wire::control& message) = 0; // connects first
  virtual void send_state(incarnation_id to, std::uint64_t transfer, std::span<const std::byte> bytes,
                          bulk_done done) = 0;
  virtual void assign_prefetch(const batch_assignment& what) = 0;
  virtual void stop_prefetch() = 0;
  virtual void write_checkpoint(snapshot what, duration stall) = 0;
  virtual void load_checkpoint(const std::string& path, std::span<std::byte> into, load_done done) = 0;
  // Writes the last calls of this rank, where the job keeps them: who it is, and why, is said.
  virtual void keep_flight(const flight_header&) {}
  virtual void fail(const error& cause) = 0;        // ends the actor
  virtual void leave(const std::string& cause) = 0; // ends the process, in order
};

struct worker_settings {
  job_id job;
  std::shared_ptr<const dataset> test_data; // evaluated by rank 0 at the end; may be null
  time_point job_started;
};

class worker_core final : public trainer_listener {
public:
  // `compute`, `ports` outlive it. Registers itself as the trainer's listener.
  worker_core(worker_settings settings, trainer& compute, worker_ports& ports);
  ~worker_core() override;
  worker_core(const worker_core&) = delete;
  worker_core& operator=(const worker_core&) = delete;

  void on_director(const wire::control& message);
  void on_peer(incarnation_id from, const wire::control& message);
  void on_peer_lost(incarnation_id who, const error& cause);
  [[nodiscard]] std::span<std::byte> on_state_announced(incarnation_id from, const bulk_announcement& what);
  void on_state_received(incarnation_id from, std::uint64_t transfer, const expected<void>& result);
  void on_checkpoint_settled(const wire::checkpoint_report& report); // written or failed
  void on_prefetcher_restarted(const std::string& cause);
  void on_restarted(generation_id newest); // this is a fresh life of a failed worker
  void report_progress();                  // now and then, from a timer

  [[nodiscard]] generation_id generation() const { return plan_.generation; }

  // trainer_listener
  void on_connected(generation_id generation, expected<void> result) override;
  void on_first_step(generation_id generation, step_id step) override;
  void on_ended(generation_id generation, step_id applied, run_end how) override;
  void on_refused(generation_id generation, step_id computing, bool ours) override;
  void on_aborted(generation_id generation, const error& why) override;
  void on_failed(generation_id generation, step_id applied, const error& cause) override;
  void on_snapshot(generation_id generation, step_id step, lease state, duration stall) override;

private:
  enum class phase : std::uint8_t { idle, preparing, prepared, running, finishing, stopping };

  void hear(const wire::prepare_generation& m);
  void hear(const wire::start_generation& m);
  void hear(const wire::end_generation& m);
  void hear(const wire::stop_worker& m);
  template <class Other>
  void hear(const Other&) {} // not for a worker from its director: dropped

  void get_state();
  void load_from_checkpoint();
  void state_settled(const expected<void>& result);
  void check_prepared();
  void begin_if_ready();
  void check_stopped();
  void check_finished();
  void finish();
  void send_finished(wire::worker_finished done);
  void prefetch_from(step_id step);
  void prepare_failed(const error& cause);
  void keep_flight(const std::string& cause, flight_writer by = flight_writer::worker);

  // worker_handover.cpp: the state comes from a peer, and is given to others
  struct request {
    incarnation_id from;
    wire::state_request what;
  };
  [[nodiscard]] bool is_source(incarnation_id who) const;
  void request_from_peer();
  void hear_request(incarnation_id from, const wire::state_request& m);
  [[nodiscard]] bool may_give() const;
  void serve_next();
  void give(const request& to);
  void given();
  void drop_state();
  void forget_requests_before(generation_id generation);
  void digest_state(std::function<void(const std::string&)> done);

  worker_settings settings_;
  trainer& trainer_;
  worker_ports& ports_;
  phase phase_{phase::idle};
  wire::prepare_generation plan_;
  bool holds_state_{false};
  step_id applied_;

  bool connected_{false};   // the communicator of `plan_` is there
  bool connecting_{false};  // and is being made on the device
  bool state_ready_{false}; // the arena holds plan_.step
  bool arena_busy_{false};  // a load or an incoming transfer writes to it
  std::optional<wire::state_offer> offer_;
  bool start_asked_{false};
  std::vector<request> requests_; // that wait: one a member at most
  bool serving_{false}; // the state is on its way to a peer, or its digest is being computed for that
  std::string digest_;  // of the state held, as its first source said; empty: not known
  std::set<step_id> checkpoints_in_flight_; // of this life
  std::shared_ptr<int> alive_{std::make_shared<int>(0)};
};

} // namespace troupe
