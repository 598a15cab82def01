// Timeline: what struck a run and what its director said, in the order of virtual time, for people.
#pragma once

#include <string>
#include <vector>

#include "cli/sim/strikes.hpp"

namespace troupe::sim {

// One line each: "   1234.567 ms  generation_started  generation 3, step 17".
[[nodiscard]] std::vector<std::string> timeline_of(const cluster& of,
                                                   const std::vector<strike_report>& struck);

} // namespace troupe::sim
