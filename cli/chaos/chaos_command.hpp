// `troupe chaos`: runs a program again and again under random faults, and compares with the fault-free run.
//
//   troupe chaos -n N [OPTIONS] -- PROGRAM [ARG...]
//
// Exit codes: 0 every run is right, 1 one is not, 2 usage (also a program that does not finish without
// faults), 128 + N interrupted by signal N.
#pragma once

#include <iosfwd>

#include "cli/chaos/chaos_settings.hpp"

namespace CLI {
class App;
}

namespace troupe {

// Adds `chaos` to `parent`; `into` outlives the parse.
CLI::App* register_chaos(CLI::App& parent, chaos::chaos_options& into);
// Returns the exit code. Table or JSON on `out`; on `err` what goes wrong, and progress on a terminal.
[[nodiscard]] int run_chaos(const chaos::chaos_settings& settings, std::ostream& out, std::ostream& err);

} // namespace troupe
