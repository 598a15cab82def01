// Time as the seams give it: nanoseconds on one monotonic clock, real or simulated.
#pragma once

#include <chrono>
#include <cstdint>

namespace troupe {

using duration = std::chrono::nanoseconds;

struct troupe_clock { // tag clock: `now` comes from the clock seam only
  using duration = troupe::duration;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<troupe_clock, duration>;
  static constexpr bool is_steady = true;
};
// Comparable across the processes of one host (CLOCK_MONOTONIC).
using time_point = troupe_clock::time_point;

[[nodiscard]] constexpr double to_ms(duration d) {
  return std::chrono::duration<double, std::milli>(d).count();
}
[[nodiscard]] constexpr double to_s(duration d) {
  return std::chrono::duration<double>(d).count();
}
[[nodiscard]] constexpr std::int64_t to_ns(time_point t) {
  return t.time_since_epoch().count();
}
[[nodiscard]] constexpr time_point time_from_ns(std::int64_t ns) {
  return time_point{duration{ns}};
}

} // namespace troupe
