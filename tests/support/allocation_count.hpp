// Counts calls of `operator new` in a test program: link allocation_count.cpp into it.
#pragma once

#include <cstdint>

namespace troupe::test {

[[nodiscard]] std::uint64_t allocations_so_far(); // of all threads

} // namespace troupe::test
