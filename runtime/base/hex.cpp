#include "runtime/base/ids.hpp"

#include <array>
#include <cstdio>

namespace troupe {

std::string to_hex(std::uint64_t high, std::uint64_t low) {
  std::array<char, 33> text{};
  std::snprintf(text.data(), text.size(), "%016llx%016llx", static_cast<unsigned long long>(high),
                static_cast<unsigned long long>(low));
  return {text.data(), 32};
}

} // namespace troupe
