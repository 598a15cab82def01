// Host clock: the clock seam on CLOCK_MONOTONIC, timers on an event loop.
//
// Owns:     a pool of timers that grows to the largest number pending; arming one again does not allocate.
// Runs on:  `now` any thread; `call_after` and `cancel` on the event loop, or before it runs.
// Invariants:
//   HC-1    a timer fires once, not before its delay has passed, and never after it was cancelled.
//   HC-2    the task of a cancelled timer is destroyed by `cancel`; those still pending, by the destructor.
//   HC-3    an id is never used twice.
#pragma once

#include <memory>

#include "runtime/seams/clock.hpp"

namespace troupe {

class event_loop;

class host_clock final : public clock_seam {
public:
  explicit host_clock(event_loop& loop); // the loop outlives the clock
  ~host_clock() override;
  host_clock(const host_clock&) = delete;
  host_clock& operator=(const host_clock&) = delete;

  [[nodiscard]] time_point now() const override;
  timer_id call_after(duration delay, task work) override;
  void cancel(timer_id timer) override;
  [[nodiscard]] std::size_t pending() const; // timers armed

private:
  struct state;
  std::shared_ptr<state> state_;
};

} // namespace troupe
