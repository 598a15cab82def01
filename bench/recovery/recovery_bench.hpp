// Recovery benchmark: workers of real jobs are killed and stopped; how soon that is noticed, and how soon the
// first new step is committed. The baseline, in the same run: everything killed and started again from disk.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "bench/support/bench_report.hpp"
#include "runtime/base/error.hpp"
#include "runtime/base/time.hpp"

namespace troupe::bench {

class job_runner;

struct recovery_bench_settings {
  std::uint32_t strikes_min{10}; // of each row
  duration detect_after{std::chrono::seconds{1}};
  bool quick{false}; // 2 workers, 1 MiB, a strike each: for a look
};

[[nodiscard]] expected<bench_report> bench_recovery(job_runner& runner,
                                                    const recovery_bench_settings& settings,
                                                    const std::function<void(const std::string&)>& tell);

} // namespace troupe::bench
