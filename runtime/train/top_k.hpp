// Top-K: of a shard's gradient only the largest entries are summed; the rest waits in the shard's residual.
//
// Flow:     a shard's gradient + its residual -> the kept entries, summed; all others -> its residual
// Owns:     nothing. The residuals lie in the arena, a slot a shard, after the optimizer's.
// Runs on:  the device's executor; pure, no allocation.
// Invariants:
//   TK-1    the result depends on gradient and residual only: the entries kept are those of the largest
//           magnitude; of equal ones those that come first. NaN is above infinity, infinity above all else.
//   TK-2    nothing is lost: entry by entry, what is kept and what remains is gradient + residual.
// Why:      docs/design/0046-top-k.md
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "runtime/train/optimizer.hpp"
#include "runtime/train/parameter_store.hpp"

namespace troupe {

// Entries of a shard's gradient that are summed, where `fraction` of them are kept: at least one; 0: Top-K is
// off. Padding does not count.
[[nodiscard]] std::size_t kept_entries(const arena_layout& layout, double fraction);

// `gradient` becomes the `kept` largest entries of gradient + residual, and zeros; `residual` the others.
// Complexity: three reads and two writes of both.
void keep_largest(std::span<float> gradient, std::span<float> residual, std::size_t kept) noexcept;

// Freezes a store for this optimizer and, where `fraction` is not 0, a residual for each of `shards`.
void freeze_state(parameter_store& store, const optimizer& rule, std::uint32_t shards, double fraction);

} // namespace troupe
