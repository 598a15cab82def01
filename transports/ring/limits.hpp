// Limits of the ring room, with their units, and what its choice of an algorithm assumes.
#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/base/limits.hpp"

namespace troupe::limits {

inline constexpr std::size_t ring_descriptor_bytes_max = 128;
inline constexpr std::size_t ring_heard_max = workers_max + 64; // processes that spoke of a later generation
// A contribution that travels as one message. Above, sums go in slices.
inline constexpr std::size_t ring_message_bytes_max = 64 * 1024;
// A slice travels in pieces of this size: what is evaluated and sent on while the next ones arrive.
inline constexpr std::size_t ring_piece_bytes = 512 * 1024;
// A piece whose contributions have no more bytes than this is added up on the event loop, where it has just
// arrived: about 0.2 ms. Above, on the lane.
inline constexpr std::size_t ring_loop_bytes = 2 * 1024 * 1024;
// Of a group's all-reduce: above, ranks reduce a slice each, for another round.
inline constexpr std::size_t ring_group_exchange_bytes_max = 16 * 1024;
inline constexpr unsigned ring_transfers_max = 8; // under way to one peer at a time
inline constexpr std::uint32_t ring_places_max = 1U
                                                 << 22U; // pieces x contributions that one rank sends another

// Costs that `choose_way` compares, of UCX over tcp (docs/design/0036): only their proportions matter.
inline constexpr double ring_message_us = 8;      // sending or receiving a message
inline constexpr double ring_round_us = 40;       // from one rank's call to another's answer
inline constexpr double ring_transfer_us = 40;    // of a bulk transfer beside its bytes: four messages
inline constexpr double ring_bytes_per_us = 1000; // of one rank, both directions together

} // namespace troupe::limits
