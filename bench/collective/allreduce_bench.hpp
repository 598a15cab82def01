// All-reduce benchmark: the sum of gradients between processes of one host, beside Gloo and Open MPI, and
// the memory copies that bound it.
//
// Each system is a program (bench/collective/*_main.cpp) that measures one size with so many ranks. The
// programs take turns at each size, so that what else happens on the machine meets all of them; rows are
// medians of the repetitions, ratios are of neighbours.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "bench/support/bench_report.hpp"
#include "runtime/base/error.hpp"

namespace troupe::bench {

class job_runner;

struct allreduce_bench_settings {
  std::uint32_t repetitions{5}; // of each program at each size
  bool quick{false};            // two sizes, few iterations: for a look
};

[[nodiscard]] expected<bench_report> bench_allreduce(job_runner& runner,
                                                     const allreduce_bench_settings& settings,
                                                     const std::function<void(const std::string&)>& tell);

} // namespace troupe::bench
