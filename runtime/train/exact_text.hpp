// Numbers as text without loss, for fingerprints (private to this room).
#pragma once

#include <array>
#include <charconv>
#include <string>

namespace troupe {

[[nodiscard]] inline std::string exact(float value) {
  std::array<char, 64> buffer{};
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value).ptr;
  return {buffer.data(), end}; // the shortest text that reads back as the same bits
}

} // namespace troupe
