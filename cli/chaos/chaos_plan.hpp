// Chaos plan: what strikes one run, and when.
//
// Pure: a function of the settings, the run's number, the length of the fault-free run and its workers.
// Moments come from an exponential distribution; kinds and targets are drawn evenly. Most strikes are faults
// that the program injects into itself (a plan file); some come from outside, as signals by `troupe chaos`.
// Invariants:
//   CH-1    the same seed, run, length and workers draw the same strikes.
//   CH-2    within any minute no worker is struck more than `strikes_a_minute_max` times: less than the
//           restart intensity of a program, so a job that ends for its spent budget is at fault itself.
//   CH-3    at most one strike of a run kills the director.
//   CH-4    every run is struck before the fault-free run would have ended.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/policy/fault.hpp"

namespace troupe::chaos {

inline constexpr std::uint32_t strikes_a_minute_max = 4; // of one worker
inline constexpr std::size_t strikes_max = 128;          // of one run
inline constexpr duration lasting_min = std::chrono::milliseconds{200};
inline constexpr duration lasting_max = std::chrono::seconds{3}; // of a stop, a cut, a slow disk, ...

struct strike {
  std::string kind;                    // a name of `known_kinds`
  duration at{};                       // since the job started
  std::optional<fault> inside{};       // what the program injects; none: a signal from outside
  std::optional<std::uint32_t> rank{}; // whom it hits; none: the director, or what all ranks share
  duration lasting{};                  // from outside: until it is continued; 0: killed
  [[nodiscard]] bool kills_director() const;
};
[[nodiscard]] std::string to_text(const strike& one);

struct plan_settings {
  std::uint64_t seed{1};
  duration mtbf{std::chrono::seconds{3}}; // mean time between faults
  std::vector<std::string> kinds;         // names of `known_kinds`, not empty
};

// All kinds of faults, and the two from outside.
[[nodiscard]] std::vector<std::string_view> known_kinds();

[[nodiscard]] std::vector<strike> draw_plan(const plan_settings& settings, std::uint64_t run, duration length,
                                            std::uint32_t workers);
// The file for `--fault-plan`; strikes from outside stand in it as comments.
[[nodiscard]] std::string to_toml(std::span<const strike> plan);

} // namespace troupe::chaos
