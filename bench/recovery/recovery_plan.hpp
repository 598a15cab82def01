// Recovery plan: which worker is struck at which step; and what the summaries of the runs come to.
//
// Pure. Each worker is struck once a run: a worker that fails again soon is started again after a pause
// (back-off), which is not what is measured here.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bench/support/bench_report.hpp"
#include "runtime/base/error.hpp"
#include "runtime/base/time.hpp"

namespace troupe::bench {

struct recovery_scenario {
  std::string fault; // "SIGKILL", "SIGSTOP", or as `--fault` names it
  std::uint32_t workers{2};
  std::string program; // in the folder of this build's programs
  std::uint64_t state_bytes{0};
  std::uint32_t strikes_min{10};
  duration detect_after{std::chrono::seconds{1}};
};

struct strike_samples {
  std::vector<double> detected_ms, left_ms, recovered_ms, steps_lost;
  bool survivors_kept{true};
};

inline constexpr std::uint64_t steps_before_strike = 100;
inline constexpr std::uint64_t steps_between_strikes = 150;
// A hang is told from slow steps once a few heartbeats have said how long steps take.
inline constexpr std::uint64_t steps_before_hang = 1000;
inline constexpr std::uint64_t steps_between_hangs = 600;

[[nodiscard]] std::uint32_t runs_needed(const recovery_scenario& what);
// The program's arguments for one run: its length, and one fault a worker.
[[nodiscard]] std::vector<std::string> strike_arguments(const recovery_scenario& what);
// By failure: from the director's decision to its hearing that the last survivor has left the generation's
// collective [ms].
[[nodiscard]] std::vector<double> leaving_times(const std::vector<nlohmann::json>& events);
// Adds a run's failures. errc::corrupt: not as many as were struck, or one that was not recovered from.
[[nodiscard]] expected<void> add_run(strike_samples& into, const recovery_scenario& what,
                                     const nlohmann::json& summary,
                                     const std::vector<nlohmann::json>& events);
[[nodiscard]] row row_of(const recovery_scenario& what, const strike_samples& from,
                         const std::string& system);

} // namespace troupe::bench
