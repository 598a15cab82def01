// Rank measure: one operation of all ranks, each a forked process, timed from a common start.
//
// Before each iteration every rank rewrites its input, then all start together. An iteration's time is that
// of its slowest rank. Fork while the process has one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "runtime/base/error.hpp"

namespace troupe::bench {

struct timed_row {
  std::string system; // "troupe-ring", "ucx-one-way", "ucx-both-ways"
  bool canonical{false};
  std::uint32_t ranks{1};
  std::size_t bytes{0};
  double min_us{0}; // on a busy machine the one that says something about the code
  double p50_us{0};
  double p99_us{0};

  // bytes / time, and the same scaled by what an all-reduce must move: 2 (n - 1) / n.
  [[nodiscard]] double algbw_gb_s() const;
  [[nodiscard]] double busbw_gb_s() const;
};

struct operation {
  std::function<void(float)> prepare; // rewrites the input
  std::function<bool()> run;          // timed
};

// Runs as one rank, in its own process, which has one thread until then: false when something failed.
using rank_setup = std::function<expected<operation>(std::uint32_t rank)>;

// Fills in the times of `row`, whose other fields are set.
[[nodiscard]] expected<timed_row> measure(timed_row row, std::uint32_t iterations, const rank_setup& setup);

} // namespace troupe::bench
