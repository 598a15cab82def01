#include "transports/shm/meeting.hpp"

namespace troupe {

namespace {

constexpr std::uint64_t abort_bit = std::uint64_t{1} << 63;

} // namespace

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
    ring(words_.bell);
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
  wait_at(words_.bell, tuning_, [&] { return settled(target, result); });
  return result;
}

void meeting::abort() noexcept {
  abort_meeting(words_);
}

bool meeting::aborted() const noexcept {
  return is_aborted(words_);
}

std::vector<std::uint64_t> meeting::arrivals() const {
  return arrivals_of(lines_);
}

void abort_meeting(meeting_words& words) noexcept {
  words.arrived.fetch_or(abort_bit);
  ring(words.bell);
}

bool is_aborted(const meeting_words& words) noexcept {
  return (words.arrived.load() & abort_bit) != 0;
}

std::vector<std::uint64_t> arrivals_of(std::span<const arrival_line> lines) {
  std::vector<std::uint64_t> sequences;
  sequences.reserve(lines.size());
  for (const auto& line : lines)
    sequences.push_back(line.sequence.load(std::memory_order_acquire));
  return sequences;
}

} // namespace troupe
