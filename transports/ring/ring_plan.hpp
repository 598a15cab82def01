// Ring plan: how a sum between hosts goes, as pure functions of its shape.
//
// In:       shards, world, elements.
// Out:      the way that costs least; who owns which elements, and in which pieces they travel.
// Invariants:
//   RP-1    all ranks get the same plan from the same shape; the way itself is in the descriptor.
//   RP-2    slices cover the elements without gap or overlap, cut at cache lines; pieces cover a slice.
//   RP-3    `doubles` holds only where pairing ranks by the bits of their numbers is the canonical tree.
// Why:      docs/design/0036-sums-across-hosts.md
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "runtime/seams/collective.hpp"

namespace troupe {

enum class ring_way : std::uint8_t {
  alone,    // a world of one: its contribution is the sum
  exchange, // everybody sends everything to everybody, and adds up for itself: one round
  doubling, // partial sums are swapped along the tree: log2(world) rounds of one message each
  slices,   // every rank adds up its slice of the elements and sends it to all others
};

// The elements that `rank` adds up for all.
[[nodiscard]] element_range slice_of(std::size_t elements, std::uint32_t world, std::uint32_t rank);
struct ring_pieces {
  std::size_t bytes{0};      // of a piece, at most
  std::size_t loop_bytes{0}; // ring_settings::loop_bytes
};
[[nodiscard]] std::size_t pieces_of(const element_range& slice, std::size_t piece_elements);
[[nodiscard]] element_range piece_of(const element_range& slice, std::size_t piece_elements,
                                     std::size_t number);

// One contribution a rank, and the tree over them is balanced. Complexity: O(shards).
[[nodiscard]] bool doubles(const collective_shape& shape);
// Whether a sum of this shape can go this way.
[[nodiscard]] bool possible(ring_way way, const collective_shape& shape);
// The cheapest possible one. Complexity: O(shards).
[[nodiscard]] ring_way choose_way(const collective_shape& shape);

[[nodiscard]] std::string_view to_string(ring_way way);
[[nodiscard]] std::optional<ring_way> parse_ring_way(std::string_view text);

} // namespace troupe
