// Step engine: turns batches into updates, one step after another, until told to stop.
//
// Flow:     batch -> forward, backward -> contribution -> all-reduce -> clip, optimizer -> the next state
// Owns:     gradient scratch, the sum of micro-steps; not the arena, which is the parameter store's.
// Runs on:  the device's executor, all calls and callbacks; a state machine that never waits: it returns
//           where it needs something and is resumed by it. Between steps it goes through the executor's
//           queue, so other tasks of the device get their turn.
// Fails:    exceptions of the model and of hooks end at this edge and become `on_failed`; an aborted
//           all-reduce becomes `on_ended(aborted)`. Either way it is idle afterwards and can begin again.
// Invariants:
//   SE-1    a step is applied exactly once, from the sum of exactly its own global batches.
//   SE-2    the arena changes only inside the update of a step: whenever the engine waits, pauses or is idle
//           it holds the state of `applied`, whole.
//   SE-3    at most one all-reduce is in flight; of one that fails nothing is applied. So at most the step
//           in flight is lost.
//   SE-4    a batch's memory goes back as soon as its last shard was computed, before the all-reduce.
//   SE-5    every `begin` is answered by exactly one `on_ended` or `on_failed`, never inside the call.
//   SE-6    `on_step` is called once for every applied step, in order.
//   SE-7    the bits of the state depend on the state before, the batches and the settings: not on rank,
//           world, timing, pauses or aborted attempts.
//   SE-8    a step allocates nothing.
//   SE-9    a step is applied only with the receipt of its own sum: the communicator's next number (CO-4).
//   SE-10   a sum with a value that is not finite is refused: nothing is applied, on any rank.
//   SE-11   with Top-K a rank has the residuals of its own shards, and those of all after every `whole_every`
//           steps and after the last: only these states are whole. A run that ends elsewhere goes back to the
//           newest whole one, so SE-2 holds while the engine is idle or takes a snapshot.
// Why:      docs/design/0004-step-engine.md, docs/design/0046-top-k.md
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "runtime/base/error.hpp"
#include "runtime/base/ids.hpp"
#include "runtime/data/batch.hpp"
#include "runtime/data/batch_stream.hpp"
#include "runtime/seams/clock.hpp"
#include "runtime/seams/collective.hpp"
#include "runtime/seams/executor.hpp"
#include "runtime/seams/process.hpp"
#include "runtime/train/optimizer.hpp"
#include "runtime/train/parameter_store.hpp"
#include "runtime/train/schedule.hpp"
#include "runtime/train/shard_pass.hpp"
#include "runtime/train/step_observer.hpp"

namespace troupe {

struct step_settings {
  std::uint32_t shards{8};         // logical shards a global batch is cut into
  std::uint32_t global_batch{128}; // samples of one all-reduce; a multiple of `shards`
  // Global batches that make one optimizer step: their gradients are summed in order after each all-reduce,
  // and the mean is over all of their samples. Step k consumes global batches k * accumulate, ... in order.
  std::uint32_t accumulate{1};
  // Gradients whose sum starts while backward goes on; 0: the whole sum starts after it.
  std::size_t bucket_bytes{0};
  element_type wire{element_type::float32}; // what gradients are rounded to on their way (SH-5)
  double top_k{0};              // of a shard's entries, so many are summed, the others later; 0: all are
  std::uint64_t whole_every{1}; // with top_k: steps between two whole states (SE-11)
  float clip_norm{0};           // the mean gradient is scaled down to this norm; 0: off
  learning_rate rate{};         // resolved
};

// errc::bad_argument, one line that names the setting, its value and what is accepted.
[[nodiscard]] expected<void> validate(const step_settings& settings);

// One stretch of steps in one generation. Nothing is owned; all outlives the answer to `begin`.
struct step_run {
  generation_id generation;
  communicator* reduce{nullptr}; // made for `shape()` in this world; no sum yet
  // Filled for batches first_step * accumulate up to last_step * accumulate. A reader that fails is its
  // owner's affair: `end` the run, or let the stream go on.
  batch_stream* batches{nullptr};
  std::uint32_t rank{0};
  std::uint32_t world{1};
  step_id first_step; // the state that the arena holds
  step_id last_step;  // the run is finished at this state
  // The state it begins with may lack its snapshot (whoever should have kept it may have died): ask for it.
  bool snapshot_first{false};
};

// What an engine works on and with; all outlives it.
struct step_context {
  model& kernels;
  parameter_store& store; // frozen (top_k.hpp: freeze_state)
  const optimizer& rule;
  executor& queue; // the device's
  const clock_seam& clock;
  black_box& box;
  step_observer& observer;
};

class step_engine {
public:
  // `settings` are valid. Destroyed on the device's executor, or after that has stopped; while idle.
  step_engine(const step_context& context, const step_settings& settings);
  ~step_engine();
  step_engine(const step_engine&) = delete;
  step_engine& operator=(const step_engine&) = delete;

  // While idle. Allocates (the plan); steps do not.
  void begin(const step_run& run);
  // Stops at the next moment at which no step is in flight: at once while it waits for data or a snapshot
  // slot. To leave a step in flight, abort the communicator too. Ignored while idle.
  void end();
  // The device's executor runs nothing more (its process ends): forgets a run that is open, unanswered.
  void abandon();
  // A snapshot slot may have become free, or a step may start. Ignored unless it waits for that.
  void resume();

  [[nodiscard]] bool idle() const { return phase_ == phase::idle; }
  [[nodiscard]] step_id applied() const { return applied_; }
  // float32 elements of a contribution, for collective_shape.
  [[nodiscard]] std::size_t contribution_size() const { return pass_.elements(); }
  // Of its communicators; generation and world are to be filled in.
  [[nodiscard]] collective_shape shape() const { return pass_.shape(); }
  [[nodiscard]] const step_settings& settings() const { return settings_; }
  [[nodiscard]] std::uint64_t samples_per_step() const {
    return std::uint64_t{settings_.global_batch} * settings_.accumulate;
  }
  // Of the state of `applied`; not while a step is in flight. Blocks for about 0.1 ms per MiB.
  [[nodiscard]] std::string state_digest() const;

private:
  enum class phase : std::uint8_t {
    idle,
    queued,    // a task of ours is in the executor's queue
    starved,   // waits for the stream's on_ready
    reducing,  // waits for the all-reduce
    gathering, // waits for the residuals of all shards
    paused,    // waits for a snapshot slot
    held,      // waits until the step may start
  };

  template <class Work>
  void guarded(Work&& work);
  void enqueue();
  void on_queue(std::uint64_t ticket);
  void on_batch_ready();
  void on_reduced(expected<reduction> result);

  void advance();
  void start_step();
  [[nodiscard]] bool next_batch();
  void compute_and_reduce();
  void collect(const reduction& result);
  void refuse();
  void apply(std::span<const float> gradient);
  [[nodiscard]] float clipped_scale(std::span<const float> gradient);
  void after_step();
  void gather();
  void on_gathered(const expected<void>& one);
  void keep_whole();
  void settled();
  void snapshot();
  void aborted(const error& why);
  void finish(run_end how);
  void fail(const error& cause);
  void leave();
  void drop_batch();

  [[nodiscard]] std::uint64_t batch_number() const {
    return applied_.value() * settings_.accumulate + micro_;
  }
  [[nodiscard]] duration lap(); // since the last lap

  step_context context_;
  step_settings settings_;
  shard_pass pass_;
  touched_memory accumulated_; // sum over micro-steps; empty unless accumulate > 1
  step_run run_;
  phase phase_{phase::idle};
  bool ending_{false};
  bool step_open_{false}; // start_step was called for the step being computed
  step_id applied_;
  std::uint32_t micro_{0}; // global batches of the step being computed that are summed already
  std::uint64_t sums_{0};  // of the run's communicator
  touched_memory kept_;    // the arena of `whole_` (SE-11); empty without Top-K
  step_id whole_;
  bool whole_here_{true};         // the arena holds the state of `whole_` now
  std::uint32_t gathers_left_{0}; // broadcasts that have not ended
  std::optional<error> gather_failure_;
  batch batch_;
  double loss_sum_{0};
  observation now_;
  time_point lap_began_;
  time_point step_began_;
  time_point stall_began_;
  std::uint64_t ticket_{0};             // of the task in the queue that counts; older ones are stale
  std::shared_ptr<step_engine*> alive_; // tasks hold it weakly: after destruction they do nothing
};

} // namespace troupe
