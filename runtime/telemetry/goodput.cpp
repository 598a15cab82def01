#include "runtime/telemetry/goodput.hpp"

#include <algorithm>

namespace troupe {

void goodput::step_committed(step_id step, time_point now) {
  if (step > newest_) {
    good_ += std::max(now - step_began_, duration{0});
    newest_ = step;
  }
  step_began_ = now;
}

double goodput::ratio(duration wall) const {
  if (wall <= duration{0}) return 0.0;
  return std::clamp(to_s(good_) / to_s(wall), 0.0, 1.0);
}

} // namespace troupe
