#include "runtime/policy/backoff.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "runtime/base/units.hpp"

namespace troupe {

expected<void> backoff_policy::validate() const {
  const auto refuse = [](std::string text) {
    return error{errc::bad_argument, "back-off " + std::move(text)};
  };
  if (initial <= duration::zero())
    return refuse("initial " + format_duration(initial) + ": must be longer than 0");
  if (max < initial)
    return refuse("max " + format_duration(max) + ": must be at least initial (" + format_duration(initial) +
                  ")");
  if (!(factor >= 1.0 && factor <= 100.0))
    return refuse("factor " + std::to_string(factor) + ": accepted: 1 to 100");
  if (!(jitter >= 0.0 && jitter <= 1.0))
    return refuse("jitter " + std::to_string(jitter) + ": accepted: 0 to 1");
  return {};
}

duration backoff_policy::delay(std::uint32_t attempt, std::uint64_t random) const {
  const double grown = static_cast<double>(initial.count()) * std::pow(factor, static_cast<double>(attempt));
  const double base = std::min(grown, static_cast<double>(max.count())); // an infinite `grown` ends here too
  const double unit = static_cast<double>(random >> 11) * 0x1.0p-53;     // [0, 1)
  return std::min(max, duration{static_cast<duration::rep>(base * (1.0 - jitter * unit))});
}

duration backoff::next(std::uint64_t random) {
  const auto wait = policy_.delay(attempts_, random);
  if (attempts_ < std::numeric_limits<std::uint32_t>::max()) ++attempts_;
  return wait;
}

} // namespace troupe
