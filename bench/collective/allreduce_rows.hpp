// All-reduce rows: what the programs of `bench allreduce` said, as rows and ratios. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "bench/support/bench_report.hpp"
#include "runtime/base/error.hpp"

namespace troupe::bench {

// One system at one size with so many ranks, and what its repetitions measured.
struct allreduce_series {
  std::string system; // as in the rows
  std::string program;
  std::uint32_t ranks{2}; // memcpy: processes that copy
  std::size_t bytes{0};
  bool canonical{false};              // bits that do not depend on the number of ranks
  std::uint32_t shards{0};            // troupe's; 0: another system
  std::vector<std::string> further{}; // arguments of the program

  std::vector<double> min_us{}, p50_us{}, p99_us{};
  std::vector<std::string> algorithms{}; // chosen in each run; where there are several
};

// Adds the output of one run. errc::corrupt: it is not what the program prints.
[[nodiscard]] expected<void> add_run(allreduce_series& to, const std::string& output);
// Medians over the repetitions.
[[nodiscard]] row row_of(const allreduce_series& from);
// What is asked of Troupe, held against the others. A system that was not measured has no lines.
[[nodiscard]] std::vector<ratio> ratios_of(const std::vector<allreduce_series>& all);

} // namespace troupe::bench
