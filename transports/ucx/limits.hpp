// Limits of the UCX room, with their units.
#pragma once

#include <cstddef>

#include "runtime/base/limits.hpp"

namespace troupe::limits {

inline constexpr std::size_t ucx_peers_max = workers_max + 64;       // paths open or closing at a time
inline constexpr std::size_t ucx_dead_incarnations_max = 8192;       // remembered, oldest forgotten first
inline constexpr std::size_t ucx_address_bytes_max = 16 * 1024;      // a worker's address
inline constexpr std::size_t ucx_hellos_waiting_max = ucx_peers_max; // received, not yet answered
inline constexpr std::size_t ucx_early_frames_max = 64;              // received before the own job is known
inline constexpr std::size_t ucx_early_frame_bytes_max = ucx_address_bytes_max + 256; // a hello, at most
inline constexpr std::size_t ucx_bulk_per_peer_max = 64;      // transfers under way, each direction
inline constexpr unsigned ucx_bulk_pieces_in_flight_max = 16; // per transfer
inline constexpr unsigned ucx_progress_calls_max = 64;        // per turn of the event loop
inline constexpr unsigned ucx_idle_turns_max = 32;            // in a row, before turns come with pauses
inline constexpr unsigned ucx_teardown_calls_max = 100'000;   // progress calls of a destructor

} // namespace troupe::limits
