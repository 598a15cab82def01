// Counts allocations of this program: `operator new`, and the C functions that libraries call directly.
#pragma once

#include <cstdint>

namespace troupe::testing {

[[nodiscard]] std::uint64_t allocations();

} // namespace troupe::testing
