// Rank reduction: the members' values, one element after the other, along one tree over the ranks.
//
// The tree is that of canonical_plan.hpp with a shard a rank. float16 and bfloat16 are reduced as float32 and
// rounded once, in the end; integers wrap.
//
// Flow:     one input a rank -> [rank_reduction] -> one output
// Owns:     8 KiB of scratch for each level of the tree. Every implementation of rank groups reduces through
//           this file, so that they agree to the bit (GR-4).
// Runs on:  one thread at a time; `evaluate` never allocates.
// Invariants:
//   RR-1    an element of the result depends on the same element of the inputs only, so any cut into pieces
//           gives the same bits.
//   RR-2    a NaN in a result is the one quiet NaN without sign and payload. Otherwise it would depend on the
//           processor, and on who computes what.
//   RR-3    min and max: a NaN wins; of equal values (zeros of both signs) the lowest rank's.
// Why:      docs/design/0033-rank-groups.md
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "runtime/policy/canonical_plan.hpp"
#include "runtime/seams/rank_group.hpp"

namespace troupe {

class rank_reduction {
public:
  explicit rank_reduction(std::uint32_t world);

  // Writes `elements` reduced elements to `out`, from as many of each of `inputs` (one pointer a rank). No
  // alignment is asked for; `out` may be one of the inputs.
  void evaluate(element_type type, reduce_op op, std::span<const std::byte* const> inputs,
                std::size_t elements, std::byte* out);

private:
  static constexpr std::size_t block_bytes = 8192;
  struct alignas(64) block {
    std::byte bytes[block_bytes];
  };
  template <class Codec>
  void evaluate_as(reduce_op op, std::span<const std::byte* const> inputs, std::size_t elements,
                   std::byte* out);
  template <class Codec>
  void evaluate_block(reduce_op op, std::span<const std::byte* const> inputs, std::size_t at,
                      std::size_t count, std::byte* out);
  template <class Value>
  [[nodiscard]] Value* level(std::size_t depth) {
    return reinterpret_cast<Value*>(stack_[depth].bytes);
  }

  std::uint32_t world_;
  postfix_program program_;
  std::vector<block> stack_;
};

} // namespace troupe
