// Text parts: descriptors and other short texts that one end of a seam writes and another reads.
#pragma once

#include <algorithm>
#include <charconv>
#include <string_view>
#include <system_error>

namespace troupe {

// What stands before the first `separator`, or all; `text` is left with what follows it.
[[nodiscard]] inline std::string_view next_part(std::string_view& text, char separator) {
  const auto part = text.substr(0, text.find(separator));
  text.remove_prefix(std::min(part.size() + 1, text.size()));
  return part;
}

// False: `text` is not one number, whole, that fits; `into` may be written.
template <class Number>
[[nodiscard]] bool read_number(std::string_view text, Number& into) {
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), into);
  return failed == std::errc{} && end == text.data() + text.size();
}

} // namespace troupe
