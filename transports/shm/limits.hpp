// Limits of the shared-memory collective, with their units.
#pragma once

#include <cstddef>
#include <cstdint>

namespace troupe::limits {

inline constexpr std::size_t shm_segment_bytes_max = std::size_t{1} << 38;
inline constexpr std::size_t shm_descriptor_bytes_max = 128;
// Below this a rank copies its contributions out and adds everything itself: one meeting instead of two.
inline constexpr std::size_t shm_exchange_bytes_max = 16 * 1024;
// From here on sums are stored past the caches.
inline constexpr std::size_t shm_streamed_bytes_min = 8 * 1024 * 1024;
// Looks at the meeting before a wait goes to sleep: pausing while each rank has a core of its own, yielding
// the core where ranks outnumber cores.
inline constexpr std::uint32_t shm_pauses_max = 1000;
inline constexpr std::uint32_t shm_yields_max = 50;
// A sleeper looks again after this long, whatever woke or did not wake it.
inline constexpr std::int64_t shm_recheck_ms = 100;

} // namespace troupe::limits
