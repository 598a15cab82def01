// Sample order: which sample is at which place of which epoch, as a pure function.
//
// A keyed Feistel network over the smallest power of two that holds the dataset, walked until it lands inside
// (cycle walking). No table, no state, O(1): fewer than two evaluations a sample on average (up to 64 for a
// dataset of a few samples).
//
// Invariants:
//   SO-1    for each (size, seed, epoch) the order is a bijection of [0, size): each sample exactly once.
//   SO-2    it depends on nothing else: not on the number of workers, not on what was read before.
// Source: Black and Rogaway, "Ciphers with arbitrary finite domains", CT-RSA 2002 (cycle walking).
// Why:      docs/design/0003-sample-order.md
#pragma once

#include <array>
#include <cstdint>

namespace troupe {

class epoch_order {
public:
  static constexpr unsigned rounds = 8; // even, so that both halves get the same number

  // `samples` in 1 .. limits::dataset_samples_max.
  epoch_order(std::uint64_t samples, std::uint64_t seed, std::uint64_t epoch);

  // `position` in [0, samples) to a sample index in [0, samples).
  [[nodiscard]] std::uint64_t operator()(std::uint64_t position) const;
  [[nodiscard]] std::uint64_t epoch() const { return epoch_; }

private:
  [[nodiscard]] std::uint64_t encrypt(std::uint64_t value) const;

  std::uint64_t samples_;
  std::uint64_t epoch_;
  unsigned low_bits_;
  std::uint64_t low_mask_;
  std::uint64_t high_mask_;
  std::array<std::uint64_t, rounds> keys_;
};

// The endless sequence of epochs: running sample number g (step * global_batch + place in the batch) is
// position g % samples of epoch g / samples, so a batch may straddle two epochs. Keeps the current epoch's
// keys; the answers do not depend on what was asked before (SO-2).
class sample_order {
public:
  sample_order(std::uint64_t samples, std::uint64_t seed);
  [[nodiscard]] std::uint64_t index_of(std::uint64_t running_number);

private:
  std::uint64_t samples_;
  std::uint64_t seed_;
  epoch_order current_;
};

} // namespace troupe
