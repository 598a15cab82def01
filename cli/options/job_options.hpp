// The options that every training program takes: one table row each (CONTRACT of the command line).
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "runtime/policy/job_settings.hpp"

namespace troupe {

struct job_option {
  std::string_view name;       // with dashes
  std::string_view value_name; // empty: a flag
  std::string_view group;
  std::string_view help;
  std::string_view accepted; // for errors about the value
  // Stores a value; what is wrong with it otherwise (without "; accepted: ...").
  std::optional<std::string> (*store)(job_settings& settings, std::string_view value);
  bool repeatable{false};
};

[[nodiscard]] std::span<const job_option> job_options();

// Not settings, handled by the parser itself.
inline constexpr std::string_view fault_plan_option = "--fault-plan";
inline constexpr std::string_view timeouts_option = "--show-timeouts";

} // namespace troupe
