// Latency histogram: durations in buckets of 1/64 relative width, from 1 ns to about 18 minutes; longer ones
// count in the last bucket. Fixed size (about 19 KiB); recording costs a shift and an increment.
//
// Not thread-safe: each thread has its own, and they are merged.
// Invariants:
//   LH-1    a quantile differs from the exact one by less than 1/64 of it.
//   LH-2    merging two histograms equals recording all their values in one.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "runtime/base/time.hpp"

namespace troupe {

class latency_histogram {
public:
  // One non-empty bucket, for handing a histogram to another process.
  struct bucket {
    std::uint32_t index{0};
    std::uint64_t count{0};
  };

  void record(duration value); // negative values count as zero
  void merge(const latency_histogram& other);
  // The smallest bucket that `fraction` of the values do not exceed; 0 when empty. Its upper end, at most
  // `max()`.
  [[nodiscard]] duration quantile(double fraction) const;
  [[nodiscard]] duration p50() const { return quantile(0.5); }
  [[nodiscard]] duration p99() const { return quantile(0.99); }
  [[nodiscard]] duration max() const { return max_; } // exact
  [[nodiscard]] std::uint64_t count() const { return count_; }
  [[nodiscard]] std::vector<bucket> buckets() const;
  // Adds what `buckets()` and `max()` of another histogram gave; false if they cannot be that.
  [[nodiscard]] bool add(const std::vector<bucket>& given, duration max_of_them);
  void clear() { *this = {}; }

private:
  static constexpr unsigned precision_bits = 6;
  static constexpr unsigned octaves = 34;
  static constexpr std::size_t bucket_count = (octaves + 1) << precision_bits;
  [[nodiscard]] static std::size_t index_of(std::uint64_t ns);
  [[nodiscard]] static std::uint64_t upper_end_of(std::size_t index);

  std::array<std::uint64_t, bucket_count> counts_{};
  std::uint64_t count_{0};
  duration max_{0};
};

} // namespace troupe
