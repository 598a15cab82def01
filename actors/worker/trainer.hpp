// Trainer: the device side of a worker process: model, state, step engine, communicator, snapshots.
//
// Flow:     commands from the worker's actor (event loop) -> [trainer] -> device executor, and answers back
// Owns:     parameter store, model, optimizer, engine, communicator, snapshot slots, batch stream. Lives as
//           long as the process: a restarted worker actor finds memory that has been touched already.
// Runs on:  public calls on the event loop; engine and observer on the device's executor. Answers are posted
//           to the loop and reach the listener that is set then.
// Invariants:
//   TN-1    answers of a run carry its generation: a listener drops what it did not ask for.
//   TN-2    the arena is read by others (peer, checkpoint load, digest) only while no run is open.
//   TN-3    a snapshot slot goes to one reader at a time; the engine waits for a free one, never overwrites.
// Why:      docs/design/0004-step-engine.md
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "actors/faults/fault_injector.hpp"
#include "runtime/checkpoint/layout.hpp"
#include "runtime/checkpoint/snapshot_slots.hpp"
#include "runtime/data/batch_stream.hpp"
#include "runtime/policy/failure_detector.hpp"
#include "runtime/seams/environment.hpp"
#include "runtime/telemetry/flight_dump.hpp"
#include "runtime/telemetry/latency_histogram.hpp"
#include "runtime/train/evaluation.hpp"
#include "runtime/train/step_engine.hpp"
#include "runtime/wire/control.hpp"

namespace troupe {

using model_factory = std::function<std::unique_ptr<model>(model_context&)>;

struct trainer_settings {
  std::string program;
  std::uint64_t seed{1};
  step_settings steps;
  optimizer_settings rule;
  step_id last_step;
  std::uint64_t checkpoint_every{0}; // 0: none
  std::uint32_t snapshot_slots{2};
  std::uint32_t ready_batches{4};
  std::uint32_t features{0};
};

struct training_statistics {
  std::uint64_t steps_done{0}; // in the current run
  step_id step;
  double loss{0};
  double first_loss{0};
  bool non_finite{false};
  duration in_steps{0};
};

// Loop side; called on the event loop, one at a time.
class trainer_listener {
public:
  virtual ~trainer_listener() = default;
  virtual void on_connected(generation_id generation, expected<void> result) = 0;
  virtual void on_first_step(generation_id generation, step_id step) = 0;
  virtual void on_ended(generation_id generation, step_id applied, run_end how) = 0;
  virtual void on_refused(generation_id generation, step_id computing, bool ours) = 0; // before on_ended
  virtual void on_aborted(generation_id generation, const error& why) = 0;             // before on_ended
  virtual void on_failed(generation_id generation, step_id applied, const error& cause) = 0;
  virtual void on_snapshot(generation_id generation, step_id step, lease state, duration stall) = 0;
};

// The layout of an arena as checkpoints know it.
[[nodiscard]] state_layout layout_of(const arena_layout& from, const std::string& program);

class trainer final : private step_observer {
public:
  // errc::bad_argument for a model or settings that cannot work.
  [[nodiscard]] static expected<std::unique_ptr<trainer>> make(environment& outside,
                                                               const trainer_settings& settings,
                                                               const model_factory& factory,
                                                               std::unique_ptr<fault_injector> faults);
  // While no run is open, or once the device's executor runs nothing more.
  ~trainer() override;

  void set_listener(trainer_listener* listener) { listener_ = listener; } // nullptr: answers are dropped

  // --- between runs ---
  void connect(generation_id generation, const std::string& descriptor, rank_id rank,
               const std::vector<wire::member>& members);
  void initialise(std::function<void()> done); // the state of step 0; on the device, answered on the loop
  using digest_told = std::function<void(const std::string& digest)>;
  void digest_state(digest_told done); // of `state_bytes`; on the device, answered on the loop
  // `kept`: the state of `first_step` is a checkpoint already, or none is due of it.
  void begin(generation_id generation, step_id first_step, bool takes_checkpoints, bool kept);
  [[nodiscard]] std::span<std::byte> state_bytes() const { return store_->bytes(); }
  [[nodiscard]] bool running() const { return running_; }

  // --- during a run ---
  void abort();  // answered by on_ended or on_failed if a run is open
  void resume(); // a snapshot slot is free, or a fault that is due is known to the director
  // Aborts, and calls `done` on the loop once nothing of this trainer runs on the device any more. The last
  // call before destruction.
  void close(std::function<void()> done);

  // --- at its end ---
  using evaluated = std::function<void(expected<evaluation>)>;
  void evaluate(std::shared_ptr<const dataset> data, evaluated done); // on the device, answered on the loop
  [[nodiscard]] std::string state_digest(step_id step) const;
  // The same of a snapshot, on any thread, as long as the trainer lives.
  [[nodiscard]] std::function<std::string(const snapshot&)> snapshot_digest() const;
  [[nodiscard]] std::string weights_digest() const { return store_->weights_digest(); }
  [[nodiscard]] state_layout layout() const;
  void add_statistics(wire::worker_finished& out) const; // of all runs of this process

  [[nodiscard]] progress progress_now() const;          // any thread
  void describe(flight_header& about) const;            // any thread: what it knows of its rank's calls
  [[nodiscard]] training_statistics statistics() const; // any thread
  [[nodiscard]] const std::shared_ptr<batch_stream>& batches() const { return batches_; }
  // Batches and snapshot slots that somebody holds: 0 once everything rests.
  [[nodiscard]] std::size_t leases_out() const;
  [[nodiscard]] fault_injector& faults() { return *faults_; }
  [[nodiscard]] const trainer_settings& settings() const { return settings_; }
  [[nodiscard]] const optimizer& rule() const { return *rule_; }
  [[nodiscard]] collective_shape shape(generation_id generation,
                                       const std::vector<wire::member>& members) const;

private:
  class watched_communicator;
  trainer(environment& outside, const trainer_settings& settings, std::unique_ptr<fault_injector> faults);

  [[nodiscard]] bool may_start(step_id computing) override;
  void before_step(step_id computing) override;
  void on_step(const observation& what) override;
  void gathering(step_id) override { doing(activity::in_collective); }
  [[nodiscard]] bool snapshot_due(step_id step) override;
  [[nodiscard]] bool try_snapshot(step_id step) override;
  void on_snapshot(step_id step, duration stall) override;
  void on_refused(step_id computing, bool ours) override;
  void on_aborted(const error& why) override;
  void on_ended(step_id applied, run_end how) noexcept override;
  void on_failed(step_id applied, const error& cause) noexcept override;
  template <class Call>
  void answer(Call call);
  void doing(activity what);
  void count_steady_state();
  [[nodiscard]] std::uint64_t own_arrivals() const;
  [[nodiscard]] std::vector<std::uint64_t> arrivals() const;

  environment& outside_;
  const trainer_settings settings_;
  std::unique_ptr<fault_injector> faults_;
  flight_recorder flights_;
  std::unique_ptr<parameter_store> store_;
  std::unique_ptr<model> model_;
  std::unique_ptr<const optimizer> rule_;
  std::unique_ptr<step_engine> engine_;
  std::shared_ptr<batch_stream> batches_;
  std::unique_ptr<snapshot_slots> slots_;

  trainer_listener* listener_{nullptr}; // loop only
  std::shared_ptr<int> alive_{std::make_shared<int>(0)};
  bool running_{false}; // loop only: a begin has not been answered

  // The communicator is made and used on the device; `abort` reaches it from the loop.
  mutable std::mutex communicator_mutex_;
  std::shared_ptr<communicator> communicator_;
  generation_id communicator_generation_;
  rank_id rank_;
  std::uint32_t world_{1};

  // Device only.
  generation_id generation_;
  bool takes_checkpoints_{false};
  bool first_of_run_{false};
  lease pending_snapshot_;
  latency_histogram step_time_, comm_wait_, data_wait_, stall_;
  // What the process used at one moment of the run; `step` counts within the run, 0: not taken.
  struct usage {
    std::uint64_t step{0};
    time_point at;
    process_counters counted;
  };
  usage warm_, last_;

  // Written on the device, read anywhere.
  mutable std::mutex statistics_mutex_;
  training_statistics statistics_;
  std::atomic<std::uint8_t> activity_{0};
  std::atomic<std::int64_t> activity_since_ns_{0};
  std::atomic<std::int64_t> step_busy_ns_{0};
};

} // namespace troupe
