// Timeline: what happened in a run, as lines for a person. Pure.
#pragma once

#include <string>

#include "cli/chaos/chaos_verdict.hpp"

namespace troupe::chaos {

inline constexpr std::size_t timeline_lines_max = 120; // the last ones

// Events, and strikes at the moment for which they were drawn; checkpoints that went well are left out.
[[nodiscard]] std::string timeline_of(const run_verdict& verdict);

} // namespace troupe::chaos
