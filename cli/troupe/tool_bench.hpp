// `troupe bench`: runs a benchmark and prints its result. Private to the tool.
#pragma once

#include "cli/troupe/tool_commands.hpp"

namespace troupe {

// Exit code: 0 measured (also where a number misses its bound: that is told), 1 a program failed,
// 128 + N interrupted by signal N.
[[nodiscard]] int run_bench(const bench_command& command);

} // namespace troupe
