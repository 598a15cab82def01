// Rank board: memory that all ranks of one measurement share: where they line up, and where their times go.
//
// Runs on:  each rank's thread. `align` never sleeps: a rank that is woken late would be measured late.
//           Whoever waits for one that has died waits until it is ended from outside.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace troupe::bench {

class rank_board {
public:
  [[nodiscard]] static std::size_t bytes_for(std::uint32_t ranks, std::uint32_t iterations);
  // `memory` is zeroed, 64-byte aligned, of `bytes_for` bytes, and shared by all ranks.
  rank_board(void* memory, std::uint32_t ranks, std::uint32_t iterations);

  // Returns when every rank has called it as often as this one.
  void align();
  // The iteration from which on times count. Rank 0 names a later one than it is in, once, before `align`;
  // all ranks know it after that `align`.
  void count_from(std::uint32_t iteration);
  [[nodiscard]] bool counts(std::uint32_t iteration) const;
  [[nodiscard]] std::uint32_t first_counted() const;
  // Nanoseconds by iteration.
  [[nodiscard]] std::span<std::int64_t> times_of(std::uint32_t rank) const;
  // By iteration, of its slowest rank; microseconds.
  [[nodiscard]] std::vector<double> slowest_us() const;

private:
  struct head {
    alignas(64) std::atomic<std::uint64_t> arrived;
    alignas(64) std::atomic<std::uint32_t> first; // 0: not known yet
  };
  head* head_;
  std::int64_t* times_;
  std::uint32_t ranks_, iterations_;
  std::uint64_t aligned_{0};
};

} // namespace troupe::bench
