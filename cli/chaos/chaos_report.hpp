// Chaos report: all runs, as a table for people and as one JSON object. Pure.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cli/chaos/chaos_settings.hpp"
#include "cli/chaos/chaos_verdict.hpp"

namespace troupe::chaos {

// The strikes of one kind, over all runs.
struct kind_tally {
  std::uint64_t due{0};
  std::uint64_t seen{0};
  std::vector<double> detected_ms;
  std::vector<double> recovered_ms;
};

struct chaos_report {
  chaos_settings settings;
  reference calm;
  std::vector<run_verdict> runs;
  int interrupted{0}; // the signal's number; 0: not

  [[nodiscard]] std::uint64_t equal() const; // runs with both digests
  [[nodiscard]] std::uint64_t leaks() const;
  [[nodiscard]] bool right() const; // every run
  [[nodiscard]] std::optional<double> goodput_median() const;
  [[nodiscard]] std::map<std::string, kind_tally> kinds() const;
};

[[nodiscard]] std::string heading_of(const chaos_report& report); // the fault-free run, and the table's head
[[nodiscard]] std::string row_of(const run_verdict& verdict);     // one line of the table
// What is wrong with a run, how to run it again, and what happened in it; empty for one that is right.
[[nodiscard]] std::string account_of(const run_verdict& verdict, const chaos_settings& settings);
[[nodiscard]] std::string summary_of(const chaos_report& report); // kinds, then the last line
[[nodiscard]] std::string to_json(const chaos_report& report);    // without a line end

} // namespace troupe::chaos
