// Rate meter: events a second over the recent past, by exponential averaging (time constant 5 s), exact from
// the first interval on. For progress display.
#pragma once

#include "runtime/base/time.hpp"

namespace troupe {

class rate_meter {
public:
  // `total` is the running count, for example samples committed; a total that went back restarts the meter.
  void update(double total, time_point now);
  [[nodiscard]] double per_second() const { return weight_ > 0 ? rate_ / weight_ : 0.0; }

private:
  bool started_{false};
  double total_{0};
  time_point at_{};
  double rate_{0};
  double weight_{0}; // how much of the average is filled; corrects the bias of the start
};

} // namespace troupe
