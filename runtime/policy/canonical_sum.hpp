// Canonical sum: the additions of canonical_plan.hpp, executed on memory.
//
// Flow:     contributions of all ranks -> [canonical_sum] -> elements [begin, end) of the sum
// Owns:     a few KiB of scratch, allocated once. Every collective and the simulator add through this file,
//           so that they agree to the bit.
// Runs on:  one thread at a time; `evaluate` never allocates.
// Invariants:
//   CS-2    the result of every addition is rounded to the format; contributions are rounded already.
//   CS-1    an element of the sum depends on the same element of the contributions only, so any cut of the
//           range into pieces gives the same bits.
// Why:      docs/design/0002-canonical-reduction.md
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "runtime/policy/canonical_plan.hpp"
#include "runtime/policy/wire_format.hpp"

namespace troupe {

// into[i] = into[i] + from[i]. Both of the same size; 64-byte alignment is fast, not needed.
void add_into(std::span<float> into, std::span<const float> from);

// How the sum leaves the processor: `streamed` bypasses the caches, for results larger than they are.
enum class store_kind : std::uint8_t { cached, streamed };

class canonical_sum {
public:
  canonical_sum(std::uint32_t shards, std::uint32_t world, wire_format format = {})
      : canonical_sum{even_cuts(shards, world), format} {}
  explicit canonical_sum(const collective_shape& shape)
      : canonical_sum{cuts_of(shape), wire_format{shape}} {}

  [[nodiscard]] const wire_format& format() const { return format_; }

  // One, but where the ranks hold a part of the shards (collective_shape::cuts).
  [[nodiscard]] std::uint32_t sums() const { return static_cast<std::uint32_t>(programs_.size()); }
  // Contributions expected, numbered as `first_slots` does.
  [[nodiscard]] std::uint32_t slots() const { return slots_; }
  [[nodiscard]] std::uint32_t first_slot(std::uint32_t rank) const { return first_slots_[rank]; }
  [[nodiscard]] std::uint32_t slots_of(std::uint32_t rank) const {
    return first_slots_[rank + 1] - first_slots_[rank];
  }

  // Writes elements [begin, end) of the sum of `contributions` (one pointer a slot, each to the first
  // element) to result[begin, end), and of further sums `stride` elements after the one before. `result`
  // overlaps no contribution. `streamed` needs result + begin (and stride) to be 32-byte aligned; its stores
  // are ordered before this returns. Bandwidth-bound: reads each slot once. `origin` is the number of the
  // contributions' first element, where they are a slice of all (WF-1).
  void evaluate(std::span<const float* const> contributions, std::size_t begin, std::size_t end,
                float* result, store_kind stores = store_kind::cached, std::size_t origin = 0,
                std::size_t stride = 0);

private:
  canonical_sum(const shard_cuts& cuts, wire_format format);
  // One addition of a block: operands below `slots_` are contributions, the others are scratch.
  struct operation {
    std::uint32_t into;
    std::uint32_t left;
    std::uint32_t right;
  };
  struct tree {
    std::vector<operation> operations; // the last one writes the result
    std::uint32_t only{0};             // without any: the contribution that is the result
  };
  [[nodiscard]] tree compile(const postfix_program& program);
  void evaluate_one(const tree& one, std::span<const float* const> contributions, std::size_t begin,
                    std::size_t end, float* result, store_kind stores, std::size_t origin);

  std::vector<std::uint32_t> first_slots_;
  std::uint32_t slots_;
  std::vector<tree> programs_; // by sum
  std::vector<float> scratch_;
  wire_format format_;
};

} // namespace troupe
