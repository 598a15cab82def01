// Limits of the faults room, with their units.
#pragma once

#include <cstddef>

#include "runtime/base/limits.hpp"

namespace troupe::limits {

inline constexpr std::size_t held_bytes_max = std::size_t{4} << 20; // in each direction of one process

} // namespace troupe::limits
