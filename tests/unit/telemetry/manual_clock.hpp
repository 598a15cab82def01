// A clock that stands still until it is moved. Without timers.
#pragma once

#include "runtime/seams/clock.hpp"

namespace troupe {

class manual_clock final : public clock_seam {
public:
  [[nodiscard]] time_point now() const override { return now_; }
  timer_id call_after(duration, task) override { return 0; }
  void cancel(timer_id) override {}
  void advance(duration by) { now_ += by; }

private:
  time_point now_{time_from_ns(1'000'000'000)};
};

} // namespace troupe
