// Faulty clock: a clock that can jump ahead. Timers are durations: a jump moves none of them.
#pragma once

#include <utility>

#include "runtime/faults/fault_switches.hpp"

namespace troupe {

class faulty_clock final : public clock_seam {
public:
  faulty_clock(clock_seam& inner, const fault_switches& switches)
      : inner_{inner}
      , switches_{switches} {}

  [[nodiscard]] time_point now() const override {
    return inner_.now() + duration{switches_.clock_ahead_ns.load()};
  }
  timer_id call_after(duration delay, task work) override {
    return inner_.call_after(delay, std::move(work));
  }
  void cancel(timer_id timer) override { inner_.cancel(timer); }

private:
  clock_seam& inner_;
  const fault_switches& switches_;
};

} // namespace troupe
