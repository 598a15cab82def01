// Allocation counter: how often this program has called operator new, to prove that a path does not.
#pragma once

#include <cstddef>

[[nodiscard]] std::size_t allocations_so_far();
