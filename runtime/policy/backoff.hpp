// Back-off: how long to wait before the next try. Exponential, with jitter, bounded.
//
// Invariants:
//   BO-1    no delay exceeds `max`.
//   BO-2    no delay is below (1 - jitter) x the undisturbed one, which starts at `initial`.
//   BO-3    undisturbed delays never shrink from one attempt to the next.
#pragma once

#include <cstdint>

#include "runtime/base/error.hpp"
#include "runtime/base/time.hpp"

namespace troupe {

struct backoff_policy {
  duration initial{std::chrono::milliseconds{10}};
  duration max{std::chrono::seconds{5}};
  double factor{2.0};
  double jitter{0.25}; // this fraction of a delay is random, 0 .. 1

  // errc::bad_argument names the value.
  [[nodiscard]] expected<void> validate() const;
  // Delay before attempt `attempt` (0: the first). `random` is any 64 bits, from the entropy seam.
  [[nodiscard]] duration delay(std::uint32_t attempt, std::uint64_t random) const;
};

class backoff {
public:
  explicit backoff(const backoff_policy& policy)
      : policy_{policy} {}
  [[nodiscard]] duration next(std::uint64_t random);
  void reset() { attempts_ = 0; } // it worked
  [[nodiscard]] std::uint32_t attempts() const { return attempts_; }

private:
  backoff_policy policy_;
  std::uint32_t attempts_{0};
};

} // namespace troupe
