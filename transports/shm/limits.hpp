// Limits of the shared-memory collective, with their units.
#pragma once

#include <cstddef>
#include <cstdint>

namespace troupe::limits {

inline constexpr std::size_t shm_segment_bytes_max = std::size_t{1} << 38;
inline constexpr std::size_t shm_descriptor_bytes_max = 128;
// Below this a rank copies its contributions out and adds everything itself: one meeting instead of two.
inline constexpr std::size_t shm_exchange_bytes_max = 16 * 1024;
// From here on sums are stored past the caches: writing gains 30 %, and reading costs nothing more.
inline constexpr std::size_t shm_streamed_bytes_min = 16 * 1024 * 1024;
// Looks at the meeting before a wait goes to sleep: first with a processor pause between them (40 ns each),
// where every rank can have a core; then yielding the core (0.3 us each), which is what lets the others
// come where ranks outnumber cores or the system has put two ranks on one. About 20 us in all.
inline constexpr std::uint32_t shm_pauses_max = 50;
inline constexpr std::uint32_t shm_yields_max = 50;
// A sleeper looks again after this long, whatever woke or did not wake it.
inline constexpr std::int64_t shm_recheck_ms = 100;

} // namespace troupe::limits
