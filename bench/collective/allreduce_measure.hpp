// Measures all-reduce between processes of this host, and the memory copy that bounds it.
//
// Every rank is a forked process; before each iteration it rewrites its contribution, then all start
// together. An iteration's time is that of its slowest rank. Fork while the process has one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/base/error.hpp"

namespace troupe::bench {

struct allreduce_row {
  std::string system; // "troupe-shm", "troupe-ring", "ucx-one-way", "ucx-both-ways", "memcpy"
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

// `bytes` is a multiple of 4. errc: as the collective seam; internal when a rank failed.
[[nodiscard]] expected<allreduce_row> measure_shm(std::uint32_t ranks, std::size_t bytes,
                                                  std::uint32_t iterations);
// `ranks` processes copy at the same time, each its own `bytes`.
[[nodiscard]] expected<allreduce_row> measure_memcpy(std::uint32_t ranks, std::size_t bytes,
                                                     std::uint32_t iterations);

struct abort_row {
  std::uint32_t ranks{2};
  double p50_us{0};
  double p99_us{0};
};

// From the director's abort to the return of the last of the `ranks - 1` members that wait for one that
// never comes.
[[nodiscard]] expected<abort_row> measure_abort(std::uint32_t ranks, std::uint32_t iterations);

} // namespace troupe::bench
