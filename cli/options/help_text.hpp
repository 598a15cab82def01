// What --help says besides the list of options.
#pragma once

#include <string>

#include "cli/options/program_options.hpp"

namespace troupe {

[[nodiscard]] std::string help_footer(const program_info& info);

} // namespace troupe
