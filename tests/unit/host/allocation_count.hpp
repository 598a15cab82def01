// Counts the calls of operator new in this test program.
#pragma once

#include <cstddef>

namespace troupe {
[[nodiscard]] std::size_t allocation_count();
}
