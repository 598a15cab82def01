// Sum parts: which elements of the coming sum were begun, and what is left for its end.
//
// In:       parts, as `communicator::begin` gets them.
// Out:      the two ranges that none of them covers.
// Invariants: CO-5 (collective.hpp).
#pragma once

#include <array>
#include <cstddef>

#include "runtime/base/invariant.hpp"
#include "runtime/seams/collective.hpp"

namespace troupe {

class sum_parts {
public:
  explicit sum_parts(std::size_t elements)
      : elements_{elements}
      , begun_{elements, elements} {}

  void begin(element_range part) {
    invariant(part.begin < part.end && part.end <= elements_, "CO-5: a part lies inside the elements");
    if (begun_.size() == 0) begun_ = {part.end, part.end};
    invariant(part.end == begun_.begin, "CO-5: a part ends where the one before it began");
    begun_.begin = part.begin;
  }
  [[nodiscard]] bool any() const { return begun_.size() > 0; }
  [[nodiscard]] element_range begun() const { return begun_; }
  // Below and above what was begun. The next sum's parts follow.
  [[nodiscard]] std::array<element_range, 2> take_rest() {
    const std::array<element_range, 2> rest{{{0, begun_.begin}, {begun_.end, elements_}}};
    begun_ = {elements_, elements_};
    return rest;
  }

private:
  std::size_t elements_;
  element_range begun_;
};

} // namespace troupe
