// Step observer: what the step engine tells, and asks, at the edges of a step.
//
// Steps are named by the state they produce: step n turns the state of n - 1 updates into that of n.
// All calls come on the device's executor, one at a time. The engine does not allocate; nor should these.
#pragma once

#include <cstdint>

#include "runtime/base/error.hpp"
#include "runtime/base/ids.hpp"
#include "runtime/base/time.hpp"

namespace troupe {

// One applied step. Durations of micro-steps are summed.
struct observation {
  step_id step;
  std::uint64_t samples{0};
  double loss{0};          // mean over the step's samples
  double gradient_norm{0}; // of the mean gradient, before clipping; 0 where clipping is off
  float learning_rate{0};
  bool non_finite{false}; // the loss is NaN or infinite; the gradient was finite, and was applied
  duration data_wait{};   // no batch was ready
  duration compute{};     // forward, backward, local additions
  duration comm_wait{};   // all-reduce
  duration update{};      // clipping, optimizer
  duration total{};       // since the step before was applied, without snapshot stalls
};

enum class run_end : std::uint8_t {
  finished, // reached the last step
  ended,    // `end` was called
  aborted,  // the all-reduce was aborted: the step in flight was not applied
  refused,  // the sum was not finite: the step in flight was not applied
};

class step_observer {
public:
  virtual ~step_observer() = default;

  // May step `computing` begin? False: the engine pauses until `resume`, and asks again.
  [[nodiscard]] virtual bool may_start(step_id /*computing*/) { return true; }
  // Before anything of step `computing` happens; fault injection throws or kills here.
  virtual void before_step(step_id) {}
  // Once for every applied step, in order (SE-6).
  virtual void on_step(const observation& what) = 0;
  // The residuals of all shards are fetched from the other ranks: it waits for them (SE-11).
  virtual void gathering(step_id) {}
  // Shall the state of `step` be copied? With Top-K only of states that are whole.
  [[nodiscard]] virtual bool snapshot_due(step_id) { return false; }
  // Copies the arena, or starts nothing and returns false: then the engine pauses until `resume`, and asks
  // again. The arena does not change before this returns (SE-2).
  [[nodiscard]] virtual bool try_snapshot(step_id) { return true; }
  // `stall`: how long the training loop stood still for this snapshot, copy included.
  virtual void on_snapshot(step_id, duration /*stall*/) {}

  // Before a run ends as refused: the sum of step `computing` was not finite. `ours`: nor was this rank's
  // part of it.
  virtual void on_refused(step_id /*computing*/, bool /*ours*/) {}
  // Before a run ends as aborted: what the collective said.
  virtual void on_aborted(const error& /*why*/) {}

  // The answer to `begin`, exactly one of the two (SE-5). The engine is idle and may begin again at once.
  virtual void on_ended(step_id applied, run_end how) noexcept = 0;
  // The model, a hook or the collective failed; the arena holds the state of `applied`, but with Top-K.
  virtual void on_failed(step_id applied, const error& cause) noexcept = 0;
};

} // namespace troupe
