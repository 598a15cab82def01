// Chaos verdict: what a run came to, beside the fault-free run.
//
// Pure. A failure that the program told of is put down to the last strike at that rank before it that fits
// its cause.
// Invariants:
//   CV-1    a run is right when it ended with exit code 0, has both digests and the number of steps of the
//           fault-free run, and left nothing.
//   CV-2    every finding and leak names the thing and the value.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/chaos/chaos_run.hpp"

namespace troupe::chaos {

// The fault-free run.
struct reference {
  std::string state_digest;
  std::string weights_digest;
  double steps{0};
  std::uint32_t workers{0};
  duration length{}; // of training: where strikes make sense
  duration wall{};
  double goodput{0};
  role_usage usage; // at most
};
// errc::bad_argument: it says what the program did not do.
[[nodiscard]] expected<reference> reference_of(const run_result& run);

struct strike_outcome {
  bool due{false};  // its moment came while the job ran
  bool seen{false}; // the program told of a failure
  std::optional<double> detected_ms{};
  std::optional<double> recovered_ms{};
};

struct run_verdict {
  std::uint32_t run{0};
  run_result result;
  std::vector<strike_outcome> outcomes; // by position in the plan
  std::uint64_t failures{0};            // that the program told of, also those that nobody drew
  std::string exit;                     // "0", "exit code 3", "killed by SIGKILL"
  bool state_equal{false};
  bool weights_equal{false};
  std::optional<double> restarts{};
  std::optional<double> generations{};
  std::optional<double> goodput{}; // absent: a director died, and its part of the sum with it
  std::vector<std::string> findings;
  std::vector<std::string> leaks;
  [[nodiscard]] bool right() const { return findings.empty() && leaks.empty(); }
};
[[nodiscard]] run_verdict judge(std::uint32_t run, run_result result, const reference& calm);

} // namespace troupe::chaos
