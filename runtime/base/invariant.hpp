// A broken invariant is a bug: the process dies at once and names it.
#pragma once

#include <string_view>

namespace troupe {

[[noreturn]] void invariant_broken(std::string_view name) noexcept;

constexpr void invariant(bool holds, std::string_view name) {
  if (!holds) [[unlikely]]
    invariant_broken(name);
}

} // namespace troupe
