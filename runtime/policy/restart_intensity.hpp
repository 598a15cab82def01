// Restart intensity: how many restarts are too many, and which failures no restart will cure.
//
// Invariants:
//   RI-1    in every window of length `period` at most `restarts_max` restarts are admitted.
//   RI-2    a budget once spent stays spent: the owner escalates.
//   SF-1    the same failure `repeats_max` times, with no step committed beyond it in between, ends the job.
//   SF-2    a step committed beyond a failure forgets that failure; redoing lost steps does not.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "runtime/base/time.hpp"
#include "runtime/policy/failure.hpp"

namespace troupe {

struct intensity_policy {
  std::uint32_t restarts_max{5};
  duration period{std::chrono::seconds{60}};
};

class restart_intensity {
public:
  explicit restart_intensity(const intensity_policy& policy)
      : policy_{policy} {}
  // May one more restart happen now? False, then and for ever, once the budget is spent (RI-2).
  [[nodiscard]] bool admit(time_point now);
  [[nodiscard]] bool spent() const { return spent_; }
  [[nodiscard]] std::uint64_t admitted() const { return admitted_; } // in all
  [[nodiscard]] const intensity_policy& policy() const { return policy_; }

private:
  intensity_policy policy_;
  std::deque<time_point> recent_; // at most restarts_max
  std::uint64_t admitted_{0};
  bool spent_{false};
};

class same_failure_guard {
public:
  static constexpr std::uint32_t repeats_max = 3;
  // Counts a failure; true when it has now happened `repeats_max` times without progress: stop. A lost path
  // or a silent process is not counted: it says something of the surroundings, not of the program.
  [[nodiscard]] bool record(const failure& happened);
  void committed(step_id step); // this step counts

private:
  struct seen {
    failure what;
    std::uint32_t times;
  };
  static constexpr std::size_t kept_max = 64;
  std::vector<seen> seen_; // oldest first
};

} // namespace troupe
