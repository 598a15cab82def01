#pragma once

#include <cstddef>

[[nodiscard]] std::size_t allocations_so_far();
