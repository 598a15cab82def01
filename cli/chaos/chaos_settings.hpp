// Chaos settings: the options of `troupe chaos`, checked.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/chaos/chaos_plan.hpp"
#include "runtime/base/error.hpp"

namespace troupe::chaos {

inline constexpr std::uint32_t runs_max = 100'000;

// As given on the command line.
struct chaos_options {
  std::uint32_t runs{10};
  std::uint32_t first_run{1};
  std::uint64_t seed{1};
  std::string mtbf{"3s"};
  std::string faults; // names with commas between; empty: `known_kinds`
  std::string time_limit;
  std::string keep;
  std::string report;
  bool stop_on_first{false};
  bool json{false};
};

struct chaos_settings {
  std::string program;
  std::vector<std::string> arguments;
  plan_settings plan;
  std::uint32_t runs{10};
  std::uint32_t first_run{1};
  std::optional<duration> time_limit; // of a run; none: from the length of the fault-free run
  std::string keep;
  std::string report;
  bool stop_on_first{false};
  bool json{false};
};

// Pure. `rest`: PROGRAM and its arguments. errc::bad_argument names the option, the value, what is accepted.
[[nodiscard]] expected<chaos_settings> check(const chaos_options& options,
                                             const std::vector<std::string>& rest);

// The command that runs one run's faults again.
[[nodiscard]] std::string replay_command(const chaos_settings& settings, std::uint32_t run);

} // namespace troupe::chaos
