// Bell: what members sleep on in shared memory until something has changed there.
//
// Owns:     nothing; its words live in the segment, zeroed by the system.
// Invariants:
//   ME-3    a lost wake-up costs limits::shm_recheck_ms, never a hang.
// Why:      docs/design/0002-canonical-reduction.md
#pragma once

#include <atomic>
#include <cstdint>

#include <sched.h>

#include "transports/shm/futex.hpp"
#include "transports/shm/limits.hpp"

namespace troupe {

struct bell_words {
  std::atomic<std::uint32_t> moves;    // counts what has changed
  std::atomic<std::uint32_t> sleepers; // who must be woken by a system call
};

struct wait_tuning {
  std::uint32_t pauses{0}; // looks with a processor pause between them
  std::uint32_t yields{0}; // then looks with sched_yield between them; then sleep
};
// How long to look before sleeping (limits.hpp).
[[nodiscard]] wait_tuning tuning_for(std::uint32_t world, std::uint32_t cores);

void pause_processor() noexcept;
// After a change. Whoever is not counted as a sleeper yet looks after counting itself, and sees the change.
void ring(bell_words& bell) noexcept;

// Looks until `settled()`; some change that rings `bell` makes it true.
template <class Settled>
void wait_at(bell_words& bell, const wait_tuning& tuning, Settled settled) {
  for (std::uint32_t i = 0; i < tuning.pauses; ++i) {
    if (settled()) return;
    pause_processor();
  }
  for (std::uint32_t i = 0; i < tuning.yields; ++i) {
    if (settled()) return;
    ::sched_yield();
  }
  bell.sleepers.fetch_add(1);
  for (;;) {
    const auto seen = bell.moves.load();
    if (settled()) break;
    futex_wait(bell.moves, seen, limits::shm_recheck_ms);
  }
  bell.sleepers.fetch_sub(1);
}

} // namespace troupe
