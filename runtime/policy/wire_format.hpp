// Wire format: what gradients are rounded to on their way through a sum, and the bytes that they travel as.
//
// Rounded are the gradient of every shard and the result of every addition of the canonical tree: the value
// of every tree node. A node's value is then the same whoever computes it, and fits the format whoever sends
// it, so the bits of a sum do not depend on the number of ranks (CO-1), and packing loses nothing.
//
// Runs on:  anywhere; pure, no allocation.
// Invariants:
//   WF-1    the first `rounded` elements (a multiple of 16) are rounded, to nearest even (HF-2); the others,
//           which count, never are.
//   WF-2    unpacking what was packed gives back every rounded value to the bit, NaNs included.
//   WF-3    elements lie in order: [begin, end) takes offset(end) - offset(begin) bytes, or fewer where they
//           travel as lists of entries (Top-K).
// Why:      docs/design/0040-less-to-send.md, docs/design/0046-top-k.md
#pragma once

#include <cstddef>
#include <span>

#include "runtime/seams/collective.hpp"

namespace troupe {

class wire_format {
public:
  wire_format() = default; // float32: nothing is rounded
  explicit wire_format(const collective_shape& shape);
  wire_format(element_type type, std::size_t rounded);

  [[nodiscard]] bool exact() const { return type_ == element_type::float32; }
  // Whether what travels is something else than the values as they lie in memory.
  [[nodiscard]] bool lists() const { return lists_; }
  [[nodiscard]] bool packs() const { return !exact() || lists_; }
  // `values` are elements [begin, ...).
  void round(std::span<float> values, std::size_t begin) const;
  [[nodiscard]] std::size_t offset(std::size_t element) const {
    if (exact() || element <= rounded_) return element * size_of(type_);
    return rounded_ * size_of(type_) + (element - rounded_) * sizeof(float);
  }
  [[nodiscard]] std::size_t bytes(element_range range) const {
    return offset(range.end) - offset(range.begin);
  }
  // `values` are rounded elements [begin, ...); `to` has room for `bytes` of them. Returns the bytes that it
  // took, not 0 but for no values. No alignment is needed.
  std::size_t pack(std::span<const float> values, std::size_t begin, std::byte* to) const;
  // What `pack` made of as many values; false: it did not.
  [[nodiscard]] bool unpack(std::span<const std::byte> from, std::size_t begin,
                            std::span<float> values) const;

private:
  element_type type_{element_type::float32};
  std::size_t rounded_{0};
  bool lists_{false};
};

} // namespace troupe
