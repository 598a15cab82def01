// The tool's command line: what was asked for, or the text that answers at once.
//
// Pure: reads no files, starts nothing.
// Invariants:
//   TL-1    an error is one line that names what is wrong and what is accepted; exit code 2.
//   TL-2    what follows PROGRAM is the program's, untouched, whatever it looks like.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "cli/chaos/chaos_command.hpp"
#include "cli/ckpt/ckpt_command.hpp"
#include "cli/doctor/doctor_command.hpp"
#include "cli/flight/flight_command.hpp"
#include "cli/launch/launch.hpp"
#include "cli/sim/sim_command.hpp"

namespace troupe {

struct run_command {
  launch_request request;
  bool json{false};
};

enum class bench_kind : unsigned char { step, recovery, allreduce, message, overlap };

struct bench_command {
  bench_kind what{bench_kind::step};
  bool json{false};
  bool quick{false};
  std::optional<std::uint32_t> repetitions; // runs of a row; recovery: strikes
  std::string data;                         // step: folder of the dataset
  duration detect_after{std::chrono::seconds{1}};
};

using tool_command = std::variant<std::monostate, run_command, ckpt_options, bench_command, sim_options,
                                  chaos::chaos_settings, doctor_options, flight_options>;

struct tool_line {
  tool_command command; // monostate: nothing to do but print
  int exit_code{0};
  std::string out{};
  std::string err{};
};

[[nodiscard]] tool_line parse_tool_line(std::vector<std::string> arguments); // without argv[0]

} // namespace troupe
