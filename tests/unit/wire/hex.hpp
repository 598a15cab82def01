// Bytes as hex digits: how golden bytes stand in a test.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace troupe {

[[nodiscard]] inline std::string hex_of(std::span<const std::byte> bytes) {
  static constexpr std::string_view digits = "0123456789abcdef";
  std::string hex;
  for (const auto byte : bytes) {
    hex += digits[std::to_integer<unsigned>(byte) >> 4];
    hex += digits[std::to_integer<unsigned>(byte) & 15];
  }
  return hex;
}

// The storage of a vector is aligned for any number, as decoders ask.
[[nodiscard]] inline std::vector<std::byte> bytes_of_hex(std::string_view hex) {
  const auto digit = [](char c) { return static_cast<unsigned>(c <= '9' ? c - '0' : c - 'a' + 10); };
  std::vector<std::byte> bytes;
  for (std::size_t at = 0; at + 1 < hex.size(); at += 2)
    bytes.push_back(static_cast<std::byte>(digit(hex[at]) << 4 | digit(hex[at + 1])));
  return bytes;
}

} // namespace troupe
