// Probe: counts how often a branch of recovery was taken.
//
//   if (rejected) {
//     probe<"catalog.fell_back">::hit();
//   if (probe<"director.heard_stranger">::when(!slot)) return;
//
// A name is `room.what_happened`; one branch, one name (`tests/tidy` sees to it). Every probe that is linked
// into a program is known to it before `main`, taken or not, so `probes()` is complete without a list.
// Counts belong to the process of the program: in simulation all simulated processes count together.
//
// Costs:    one relaxed atomic increment where the branch is taken, nothing where it is not.
// Why:      docs/design/0021-probes-and-planted-bugs.md
#pragma once

#include <atomic>
#include <cstdint>
#include <string_view>
#include <vector>

#include "runtime/base/fixed_text.hpp"

namespace troupe {

struct probe_count {
  std::string_view name;
  std::uint64_t hits{0};
};
// All probes of this program, by name.
[[nodiscard]] std::vector<probe_count> probes();

// Lives for ever: in a chain with all others of the program.
class probe_record {
public:
  explicit probe_record(const char* name) noexcept
      : name_{name}
      , next_{last_.exchange(this)} {}
  void hit() noexcept { hits_.fetch_add(1, std::memory_order_relaxed); }

private:
  friend std::vector<probe_count> probes();
  static constinit inline std::atomic<probe_record*> last_{nullptr};
  const char* name_;
  probe_record* next_;
  std::atomic<std::uint64_t> hits_{0};
};

template <fixed_text Name>
class probe {
public:
  static void hit() noexcept { record_.hit(); }
  // Counts if `taken`, and says so.
  static bool when(bool taken) noexcept {
    if (taken) [[unlikely]]
      hit();
    return taken;
  }

private:
  static inline probe_record record_{Name.text};
};

} // namespace troupe
