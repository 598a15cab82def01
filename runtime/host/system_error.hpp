// System errors as values: what was tried, on what, and the system's own words.
#pragma once

#include <string>
#include <string_view>

#include "runtime/base/error.hpp"

namespace troupe {

// "No space left on device" for ENOSPC; thread-safe.
[[nodiscard]] std::string system_text(int error_number);

// "cannot write '/a/b': No space left on device". Codes: storage_full, not_found, else storage_failed.
[[nodiscard]] error file_error(std::string_view attempt, std::string_view path, int error_number);

} // namespace troupe
