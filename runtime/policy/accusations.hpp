// Accusations: of members that live and cannot reach each other, which one is replaced.
//
// In:       who cannot reach whom, each told by a member. Out: whom to blame.
// Owns:     what was told in one generation.
// Invariants:
//   AB-1    who cannot be reached from, or cannot reach, most of the others is blamed: whoever told it, and
//           a pair counts once.
//   AB-2    of those alike, whoever most others accuse: who hears its director and accuses, is heard. Then
//           the highest slot.
// Why:      docs/design/0055-who-accuses.md
#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <utility>

namespace troupe {

class accusations {
public:
  void add(std::uint32_t by, std::uint32_t against) { told_.emplace(by, against); }
  void clear() { told_.clear(); }
  [[nodiscard]] bool empty() const { return told_.empty(); }
  [[nodiscard]] std::set<std::uint32_t> slots() const; // in any of them
  [[nodiscard]] std::size_t missed(std::uint32_t slot) const;
  [[nodiscard]] std::uint32_t blamed() const; // not while empty

private:
  [[nodiscard]] std::size_t accused(std::uint32_t slot) const;

  std::set<std::pair<std::uint32_t, std::uint32_t>> told_; // by, against
};

} // namespace troupe
