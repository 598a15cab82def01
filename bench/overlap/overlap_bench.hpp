// Overlap benchmark: a step whose gradients are summed during backward, beside one that sums them after it.
//
// Backward is made to take as long as the sum: the case in which most can be hidden. Programs take turns, so
// that what else happens on the machine meets all of them; numbers are medians of the rounds.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "bench/support/bench_report.hpp"
#include "runtime/base/error.hpp"

namespace troupe::bench {

class job_runner;

struct overlap_bench_settings {
  std::uint32_t repetitions{5}; // of each row
  bool quick{false};            // a small gradient, one round: for a look
};

[[nodiscard]] expected<bench_report> bench_overlap(job_runner& runner, const overlap_bench_settings& settings,
                                                   const std::function<void(const std::string&)>& tell);

} // namespace troupe::bench
