#include "transports/shm/meeting.hpp"

#include <sched.h>

#include "transports/shm/futex.hpp"
#include "transports/shm/limits.hpp"

namespace troupe {

namespace {

constexpr std::uint64_t abort_bit = std::uint64_t{1} << 63;

void pause_processor() noexcept {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

void ring_bell(meeting_words& words) noexcept {
  words.bell.fetch_add(1);
  // A sleeper that is not counted yet looks at `arrived` after counting itself, and sees it settled.
  if (words.sleepers.load() > 0) futex_wake_all(words.bell);
}

} // namespace

wait_tuning tuning_for(std::uint32_t world, std::uint32_t cores) {
  return {.pauses = world <= cores ? limits::shm_pauses_max : 0, .yields = limits::shm_yields_max};
}

meeting::meeting(meeting_words& words, std::span<arrival_line> lines, std::uint32_t rank, wait_tuning tuning)
    : words_{words}
    , lines_{lines}
    , rank_{rank}
    , tuning_{tuning} {}

meeting::outcome meeting::meet() {
  note_arrival();
  const auto target = met_ * lines_.size();
  bool last = false;
  auto result = arrive(target, last);
  if (result != outcome::complete) return result;
  if (last) {
    ring_bell(words_);
    return result;
  }
  return wait(target);
}

void meeting::note_arrival() noexcept {
  lines_[rank_].sequence.store(++met_, std::memory_order_release);
}

// Complete here means "counted".
meeting::outcome meeting::arrive(std::uint64_t target, bool& last) {
  auto arrived = words_.arrived.load();
  do {
    if ((arrived & abort_bit) != 0) return outcome::aborted;
    if (arrived >= target || arrived + lines_.size() < target) return outcome::corrupt;
  } while (!words_.arrived.compare_exchange_weak(arrived, arrived + 1));
  last = arrived + 1 == target;
  return outcome::complete;
}

// Completion is looked at before the abort: a complete meeting stays complete (ME-1).
bool meeting::settled(std::uint64_t target, outcome& result) const {
  const auto arrived = words_.arrived.load();
  if ((arrived & ~abort_bit) >= target) {
    result = outcome::complete;
    return true;
  }
  result = outcome::aborted;
  return (arrived & abort_bit) != 0;
}

meeting::outcome meeting::wait(std::uint64_t target) {
  auto result = outcome::complete;
  for (std::uint32_t i = 0; i < tuning_.pauses; ++i) {
    if (settled(target, result)) return result;
    pause_processor();
  }
  for (std::uint32_t i = 0; i < tuning_.yields; ++i) {
    if (settled(target, result)) return result;
    ::sched_yield();
  }
  words_.sleepers.fetch_add(1);
  for (;;) {
    const auto seen = words_.bell.load();
    if (settled(target, result)) break;
    futex_wait(words_.bell, seen, limits::shm_recheck_ms);
  }
  words_.sleepers.fetch_sub(1);
  return result;
}

void meeting::abort() noexcept {
  abort_meeting(words_);
}

bool meeting::aborted() const noexcept {
  return (words_.arrived.load() & abort_bit) != 0;
}

std::vector<std::uint64_t> meeting::arrivals() const {
  return arrivals_of(lines_);
}

void abort_meeting(meeting_words& words) noexcept {
  words.arrived.fetch_or(abort_bit);
  ring_bell(words);
}

std::vector<std::uint64_t> arrivals_of(std::span<const arrival_line> lines) {
  std::vector<std::uint64_t> sequences;
  sequences.reserve(lines.size());
  for (const auto& line : lines)
    sequences.push_back(line.sequence.load(std::memory_order_acquire));
  return sequences;
}

} // namespace troupe
