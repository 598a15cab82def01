// Text forms of durations ("250ms", "5s", "2min"), sizes ("64KiB", "1MiB") and numbers ("0.05").
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "runtime/base/error.hpp"
#include "runtime/base/time.hpp"

namespace troupe {

// Units: ns, us, ms, s, min, h; a number may have a decimal point. errc::bad_argument names the text.
[[nodiscard]] expected<duration> parse_duration(std::string_view text);
[[nodiscard]] std::string format_duration(duration d);
// Units: B (or none), KiB, MiB, GiB.
[[nodiscard]] expected<std::uint64_t> parse_size(std::string_view text);
[[nodiscard]] std::string format_size(std::uint64_t bytes);
// The shortest text that reads back as the same number: equal numbers have equal texts.
[[nodiscard]] std::string format_number(double number);

} // namespace troupe
