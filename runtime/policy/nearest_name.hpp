// The known name that a misspelt one probably meant; for error messages.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace troupe {

// Empty when nothing is near (more than a third of the letters differ). Optimal string alignment distance.
[[nodiscard]] std::string_view nearest_name(std::string_view wrong, std::span<const std::string_view> known);
// "a, b, c"
[[nodiscard]] std::string listed(std::span<const std::string_view> names);

} // namespace troupe
