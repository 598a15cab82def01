// Held queue: what one direction of a faulty transport keeps back, in order, each thing until its time.
//
// Flow:     messages and transfers of all peers -> [held queue] -> the other side of the transport
// Owns:     what it holds, up to limits::held_bytes_max; one timer.
// Runs on:  the event loop.
// Fails:    `hold` refuses above the limit; the caller says so to whoever sent.
// Invariants:
//   HQ-1    what is held leaves in the order it came, none earlier than its time.
//   HQ-2    everything that is held is either passed on or dropped with a reason, once; only with the queue
//           itself does it go unsaid.
#pragma once

#include <cstddef>
#include <deque>

#include "runtime/base/error.hpp"
#include "runtime/base/ids.hpp"
#include "runtime/base/task.hpp"
#include "runtime/faults/fault_switches.hpp"
#include "runtime/seams/clock.hpp"

namespace troupe {

class held_queue {
public:
  // Called with success when it may pass, with an error when the peer is gone.
  using carried = inline_function<void(const expected<void>&), 64>;

  // `cut`: of this direction, one of the switches.
  held_queue(clock_seam& clock, const fault_switches& switches, const timed_switch& cut);
  ~held_queue();
  held_queue(const held_queue&) = delete;
  held_queue& operator=(const held_queue&) = delete;

  // Must what comes now wait? Also when it only waits its turn (HQ-1).
  [[nodiscard]] bool holds_back() const;
  // errc::no_credit: too much is held already; `what` was not called.
  [[nodiscard]] expected<void> hold(incarnation_id peer, std::size_t bytes, carried what);
  void drop(incarnation_id peer, const error& cause);

private:
  struct item {
    time_point due;
    incarnation_id peer;
    std::size_t bytes;
    carried what;
  };
  void let_pass();
  void set_timer();
  [[nodiscard]] carried take_front();

  clock_seam& clock_;
  const fault_switches& switches_;
  const timed_switch& cut_;
  std::deque<item> items_;
  std::size_t bytes_{0};
  timer_id timer_{0};
};

} // namespace troupe
