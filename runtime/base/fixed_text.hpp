// Fixed text: a text as a template argument.
#pragma once

#include <algorithm>
#include <cstddef>

namespace troupe {

template <std::size_t Size>
struct fixed_text {
  consteval fixed_text(const char (&from)[Size]) { std::copy_n(from, Size, text); }
  char text[Size]{};
};

} // namespace troupe
