// Line slice: which of the elements a rank works on, where the ranks share them out at cache lines.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "runtime/seams/collective.hpp"

namespace troupe {

inline constexpr std::size_t slice_line_bytes = 64;

// The slices of ranks 0, 1, ... follow one another and cover [0, elements). Each begins at a line, where
// element 0 does, and they differ by at most one line; with more ranks than lines some are empty. Requires
// world > 0.
[[nodiscard]] inline element_range line_slice(std::size_t elements, std::size_t element_bytes,
                                              std::uint32_t world, std::uint32_t rank) {
  const auto line_elements = slice_line_bytes / element_bytes;
  const auto lines = (elements + line_elements - 1) / line_elements;
  const auto cut = [&](std::size_t position) {
    return std::min(lines * position / world * line_elements, elements);
  };
  return {cut(rank), cut(rank + std::size_t{1})};
}

} // namespace troupe
