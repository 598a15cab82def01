// Meeting: a barrier in shared memory that can be aborted, and that all members judge alike.
//
// One word counts arrivals and holds the abort bit. Arriving is a compare-and-swap that fails once the bit
// is set, so the count stands still from then on: "the k-th meeting was complete" is one fact, and every
// member reads the same answer, whoever died or was woken late.
//
// Owns:     nothing; its words live in the segment, zeroed by the system.
// Runs on:  `meet` on the device's executor (it blocks); the rest on any thread.
// Fails:    `outcome::corrupt` when the count is impossible: somebody wrote where he must not.
// Invariants:
//   ME-1    a meeting is complete if and only if all `world` members arrived before the abort.
//   ME-2    after the abort every pending `meet` of an incomplete meeting and every later one is aborted.
//   ME-3    a lost wake-up costs limits::shm_recheck_ms, never a hang (bell.hpp).
// Why:      docs/design/0002-canonical-reduction.md
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <vector>

#include "transports/shm/bell.hpp"

namespace troupe {

struct meeting_words {
  alignas(64) std::atomic<std::uint64_t> arrived; // arrivals of all meetings so far | abort bit
  alignas(64) bell_words bell;                    // rung when a meeting completes or is aborted
};

// One per rank, each on a cache line of its own.
struct alignas(64) arrival_line {
  std::atomic<std::uint64_t> sequence; // meetings reached
  std::atomic<std::uint32_t> claimed;  // 1: a member is connected as this rank
};

static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

class meeting {
public:
  enum class outcome : std::uint8_t { complete, aborted, corrupt };

  meeting(meeting_words& words, std::span<arrival_line> lines, std::uint32_t rank, wait_tuning tuning);

  // Arrives, and waits for the others. Memory written before by any member is visible to all after it.
  outcome meet();
  void abort() noexcept;
  [[nodiscard]] bool aborted() const noexcept;
  // Counts an arrival that has nobody to wait for.
  void note_arrival() noexcept;
  // Meetings that this member has reached.
  [[nodiscard]] std::uint64_t met() const noexcept { return met_; }
  // Meetings that each rank has reached; whoever is behind is who the others wait for.
  [[nodiscard]] std::vector<std::uint64_t> arrivals() const;

private:
  [[nodiscard]] outcome arrive(std::uint64_t target, bool& last);
  [[nodiscard]] outcome wait(std::uint64_t target);
  [[nodiscard]] bool settled(std::uint64_t target, outcome& result) const;

  meeting_words& words_;
  std::span<arrival_line> lines_;
  std::uint32_t rank_;
  wait_tuning tuning_;
  std::uint64_t met_{0};
};

// Sets the abort bit and wakes everybody; for members and for the director alike.
void abort_meeting(meeting_words& words) noexcept;
[[nodiscard]] bool is_aborted(const meeting_words& words) noexcept;
[[nodiscard]] std::vector<std::uint64_t> arrivals_of(std::span<const arrival_line> lines);

} // namespace troupe
