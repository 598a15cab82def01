// Step benchmark: how long a training step takes in whole programs, beside a bare loop of the same kernels.
//
// The programs run one after the other and take turns (bare, 1 worker, 2 workers, bare, ...), so that what
// else happens on the machine meets all of them; ratios are of neighbours, and the median is told.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "bench/support/bench_report.hpp"
#include "runtime/base/error.hpp"

namespace troupe::bench {

class job_runner;

struct step_bench_settings {
  std::string data;             // folder of the dataset; empty: the programs' default
  std::uint32_t repetitions{5}; // of each program
  std::uint64_t samples{64000}; // a run trains on about so many
  bool quick{false};            // one short round, for a look
};

using progress_teller = std::function<void(const std::string& line)>;

[[nodiscard]] expected<bench_report> bench_step(job_runner& runner, const step_bench_settings& settings,
                                                const progress_teller& tell);

} // namespace troupe::bench
