// Coverage of recovery: which branches that only a failure takes were taken by this program's runs.
//
// In:       the probes that are linked into this program, with their hits so far.
#pragma once

#include <iosfwd>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "runtime/base/probe.hpp"

namespace troupe::sim {

[[nodiscard]] std::vector<std::string_view> unreached_probes();
// One probe a line, those that no run reached first.
void tell_coverage(std::ostream& out);
[[nodiscard]] nlohmann::json coverage_json(); // {"reached": {name: hits}, "unreached": [name]}

} // namespace troupe::sim
