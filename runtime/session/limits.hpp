// Limits of the session room, with their units.
#pragma once

#include <cstddef>

#include "runtime/base/limits.hpp"
#include "runtime/base/time.hpp"

namespace troupe::limits {

inline constexpr std::size_t sessions_max = workers_max + 64;
inline constexpr std::size_t sessions_ended_max = 8192;         // remembered, the oldest is forgotten first
inline constexpr std::size_t session_block_bytes = 16 * 1024;   // messages that leave together
inline constexpr std::size_t session_owed_bytes_max = 8U << 20; // beyond the window, of what is owed
inline constexpr std::size_t session_spare_blocks_max = 4096;   // kept for reuse
inline constexpr std::size_t session_transfers_max = 64;        // bulk, per peer and direction
inline constexpr std::size_t session_done_transfers_max = 64;   // whose end the sender may not know yet
inline constexpr std::size_t session_digest_slice_bytes = 1U << 20; // hashed in one task of the loop
inline constexpr unsigned session_wrong_arrivals_max = 3;           // of a transfer, until it is given up
// Pauses before a transfer that is refused for the moment is tried again: each as long as all before it, and
// so doubling, up to a longest one; when they have this length together, it is given up.
inline constexpr duration session_refusal_pause_min = std::chrono::milliseconds{10};
inline constexpr duration session_refusal_pause_max = std::chrono::milliseconds{250};
inline constexpr duration session_refusal_patience = std::chrono::seconds{10};
inline constexpr std::size_t session_address_bytes_max = 16 * 1024;

} // namespace troupe::limits
