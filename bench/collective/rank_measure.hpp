// Rank measure: one operation of all ranks, each a forked process, timed from a common start.
#pragma once

#include <cstdint>
#include <functional>

#include "bench/collective/allreduce_measure.hpp"

namespace troupe::bench {

struct operation {
  std::function<void(float)> prepare; // rewrites the input
  std::function<bool()> run;          // timed
};

// Runs as one rank, in its own process, which has one thread until then: false when something failed.
using rank_setup = std::function<expected<operation>(std::uint32_t rank)>;

// Fills in the times of `row`, whose other fields are set.
[[nodiscard]] expected<allreduce_row> measure(allreduce_row row, std::uint32_t iterations,
                                              const rank_setup& setup);

} // namespace troupe::bench
