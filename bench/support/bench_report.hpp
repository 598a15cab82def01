// Bench report: the result of one benchmark, for scripts and for people.
//
// As JSON (CONTRACT: rows of `troupe bench NAME --json`): {"bench", "machine", "rows", "checks", "notes"},
// and "ratios" where there are some. As text: a table of the rows, then checks, ratios and notes.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace troupe::bench {

using row = nlohmann::ordered_json; // an object; objects inside it become columns of their own

// One number that is held against a bound.
struct check {
  std::string name;
  double value{0};
  double bound{0};
  bool at_least{true}; // else: at most
  std::string unit{};

  [[nodiscard]] bool good() const { return at_least ? value >= bound : value <= bound; }
};

// One system beside another: told, not judged.
struct ratio {
  std::string name;
  double value{0};
  std::string aim{}; // "at most 1.4"; empty: none
};

struct bench_report {
  std::string bench;
  std::vector<row> rows;
  std::vector<check> checks;
  std::vector<ratio> ratios;
  std::vector<std::string> notes;
};

// {"p50": ..., "p99": ...} of measurements; null where there are none.
[[nodiscard]] row p50_p99(const std::vector<double>& values);
// Cores, processor, memory and load of this machine, now.
[[nodiscard]] row machine_now();

[[nodiscard]] std::string to_json(const bench_report& what, const row& machine); // without a line end
[[nodiscard]] std::string to_text(const bench_report& what, const row& machine);
// Rows as lines of equal width; numbers to the right. The columns are those of all rows, in order of
// appearance; what a row does not have is "-".
[[nodiscard]] std::string table(const std::vector<row>& rows);

} // namespace troupe::bench
