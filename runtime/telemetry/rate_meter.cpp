#include "runtime/telemetry/rate_meter.hpp"

#include <cmath>

namespace troupe {
namespace {

constexpr double time_constant_s = 5.0;

} // namespace

void rate_meter::update(double total, time_point now) {
  const auto elapsed = to_s(now - at_);
  if (started_ && total >= total_) {
    if (elapsed <= 0) return; // counted with the next update
    const auto keep = std::exp(-elapsed / time_constant_s);
    rate_ = keep * rate_ + (1 - keep) * (total - total_) / elapsed;
    weight_ = keep * weight_ + (1 - keep);
  }
  started_ = true;
  total_ = total;
  at_ = now;
}

} // namespace troupe
