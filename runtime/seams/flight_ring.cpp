#include "runtime/seams/flight_ring.hpp"

#include <algorithm>
#include <bit>

namespace troupe {
namespace {

constexpr int tries_max = 8; // of a reader whose record is being written

bool valid(const flight_record& what) {
  return static_cast<std::size_t>(what.call) < collective_calls &&
         static_cast<std::size_t>(what.type) < element_types &&
         static_cast<std::size_t>(what.op) < reduce_ops &&
         static_cast<std::size_t>(what.outcome) < call_outcomes;
}

} // namespace

std::string_view to_string(call_outcome outcome) {
  constexpr std::string_view names[call_outcomes]{"pending", "done", "aborted", "failed", "left_out"};
  const auto index = static_cast<std::size_t>(outcome);
  return index < call_outcomes ? names[index] : "unknown outcome";
}

// Without fences: a release store of a word stays behind the odd version, an acquire load of it stays before
// the second look at the version. So whoever has read a new word sees that the version has moved.
void flight_ring::write(slot& into, const flight_record& what) noexcept {
  const auto version = into.version.load(std::memory_order_relaxed) | 1U;
  into.version.store(version, std::memory_order_relaxed);
  const auto from = std::bit_cast<std::array<std::uint64_t, words>>(what);
  for (std::size_t i = 0; i < words; ++i)
    into.content[i].store(from[i], std::memory_order_release);
  into.version.store(version + 1, std::memory_order_release);
}

void flight_ring::add(flight_record& made) noexcept {
  made.id = added_.load(std::memory_order_relaxed) + 1;
  write(slots_[(made.id - 1) % flight_records_max], made);
  added_.store(made.id, std::memory_order_release);
}

void flight_ring::update(const flight_record& changed) noexcept {
  if (added_.load(std::memory_order_relaxed) - changed.id >= flight_records_max) return;
  write(slots_[(changed.id - 1) % flight_records_max], changed);
}

std::optional<flight_record> flight_ring::read(std::uint64_t id) const noexcept {
  const auto& from = slots_[(id - 1) % flight_records_max];
  for (int tries = 0; tries < tries_max; ++tries) {
    const auto before = from.version.load(std::memory_order_acquire);
    std::array<std::uint64_t, words> copy{};
    for (std::size_t i = 0; i < words; ++i)
      copy[i] = from.content[i].load(std::memory_order_acquire);
    if (before % 2 != 0 || from.version.load(std::memory_order_relaxed) != before) continue;
    const auto found = std::bit_cast<flight_record>(copy);
    if (found.id != id || !valid(found)) return std::nullopt;
    return found;
  }
  return std::nullopt;
}

std::vector<flight_record> flight_ring::records() const {
  std::vector<flight_record> out;
  const auto last = added();
  const auto first = last - std::min<std::uint64_t>(last, flight_records_max);
  out.reserve(last - first);
  for (std::uint64_t id = first; id < last; ++id) {
    if (auto found = read(id + 1)) out.push_back(*found);
  }
  return out;
}

std::optional<flight_record> flight_ring::newest() const noexcept {
  const auto last = added();
  return last == 0 ? std::nullopt : read(last);
}

} // namespace troupe
