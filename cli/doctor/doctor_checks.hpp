// Doctor checks: each one a pure function from what was found to a line of the report.
//
// Invariants:
//   DO-1    every finding that is not `ok` names the remedy.
//   DO-2    a check speaks once, whatever was found.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/doctor/doctor_facts.hpp"

namespace troupe::doctor {

enum class verdict : unsigned char { ok, warn, fail };

[[nodiscard]] std::string_view to_string(verdict what); // "ok", "warn", "FAIL"

struct finding {
  std::string check; // its name, filled in by `examine`
  verdict what{verdict::ok};
  std::string text;
  std::string remedy; // empty where all is well
};

struct check {
  std::string_view name;
  finding (*judge)(const doctor_facts& facts);
};

[[nodiscard]] const std::vector<check>& all_checks();
[[nodiscard]] std::vector<finding> examine(const doctor_facts& facts);
[[nodiscard]] bool healthy(const std::vector<finding>& findings); // no FAIL

[[nodiscard]] std::string to_text(const std::vector<finding>& findings);
[[nodiscard]] std::string to_json(const std::vector<finding>& findings); // without a line end

} // namespace troupe::doctor
