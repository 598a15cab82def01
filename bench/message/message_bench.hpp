// Message benchmark: what a message between two processes costs, beside raw UCX, CAF's network module and
// gRPC.
//
// Each system is a program (bench/message/*_main.cpp), two processes of it talk over loopback. The programs
// take turns (troupe, ucx, ..., troupe, ucx, ...), so that what else happens on the machine meets all of
// them; rows are medians of the repetitions, ratios are of neighbours.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "bench/support/bench_report.hpp"
#include "runtime/base/error.hpp"

namespace troupe::bench {

class job_runner;

struct message_bench_settings {
  std::uint32_t repetitions{5}; // of each program
  bool quick{false};            // few messages: for a look
};

[[nodiscard]] expected<bench_report> bench_message(job_runner& runner, const message_bench_settings& settings,
                                                   const std::function<void(const std::string&)>& tell);

} // namespace troupe::bench
