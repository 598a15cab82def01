// Goodput: the share of the wall time that went into steps that counted.
//
// A step's time counts once: what a failed generation computed and lost, and what was computed again after a
// resume, is not good.
// Invariants:
//   GP-1    each step counts at most once.
//   GP-2    the ratio lies in [0, 1].
#pragma once

#include "runtime/base/ids.hpp"
#include "runtime/base/time.hpp"

namespace troupe {

class goodput {
public:
  // Training starts or resumes: the next step begins now.
  void training_started(time_point now) { step_began_ = now; }
  // `step` was committed; the time since the last commit or `training_started` is its.
  void step_committed(step_id step, time_point now);
  [[nodiscard]] duration good_time() const { return good_; }
  [[nodiscard]] double ratio(duration wall) const;

private:
  time_point step_began_{};
  step_id newest_;
  duration good_{0};
};

} // namespace troupe
