// Message rows: what the programs of `bench message` said, as rows and ratios. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "bench/support/bench_report.hpp"
#include "runtime/base/error.hpp"

namespace troupe::bench {

// One program in one setting, and what its repetitions measured.
struct message_series {
  std::string system; // as in the rows
  std::string program;
  std::string lane{"tcp"};
  std::string wake{"sleep"};
  double share{1}; // of the counts of messages: slow systems get fewer
  double round_trip_share{1};
  std::vector<std::string> further; // arguments of the program

  std::vector<double> half_rtt_p50, half_rtt_p99, messages_per_s, bytes_per_s;
  struct urgent_series {
    std::vector<double> p50, p99; // half round trips, us
  };
  urgent_series urgent_idle, urgent_beside_bulk; // empty: the system has no urgent messages
  std::vector<std::string> notes;
  std::optional<row> allocations; // {"round_trip", "sender", "receiver"}
};

// Adds the output of one run. errc::corrupt: it is not what the program prints.
[[nodiscard]] expected<void> add_run(message_series& to, const std::string& output);
// Three rows: round trips of 8 B, the stream of 100 B, bulk of 1 MiB. Two more where there are urgent
// messages: their round trips on an idle path, and beside bulk of 64 MiB on it.
[[nodiscard]] std::vector<row> rows_of(const message_series& from);
// What is asked of Troupe, held against the others. A system that was not measured has no lines.
[[nodiscard]] std::vector<ratio> ratios_of(const std::vector<message_series>& all);

} // namespace troupe::bench
