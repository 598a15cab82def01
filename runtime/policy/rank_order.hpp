// Rank order: members of one host get ranks that follow one another.
//
// Results do not depend on who has which rank (canonical_plan.hpp); what goes between hosts does: neighbours
// in the tree of additions should share memory.
// In:       the members' machines, in the order of their slots; the director's machine.
// Invariants:
//   RO-1    first those on the director's machine, as rank 0 writes checkpoints; then the other machines,
//           those with more members first, of two alike the one of the lower slot; on one machine by slot.
//   RO-2    members of one machine get one number: 0 is the director's, the others count from 1.
// Why:      docs/design/0047-sums-in-two-levels.md
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace troupe {

struct placed_rank {
  std::size_t member{0}; // index into the input
  std::uint32_t host{0};
  bool operator==(const placed_rank&) const = default;
};

// By rank. Complexity: O(members x machines).
[[nodiscard]] std::vector<placed_rank> order_ranks(std::span<const std::string_view> machines,
                                                   std::string_view director);

} // namespace troupe
