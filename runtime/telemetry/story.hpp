// Story: the sentences that a person reads about a job. Pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/base/time.hpp"

namespace troupe {

struct job_progress {
  std::uint64_t step{0};
  std::uint64_t steps_total{0}; // 0: not known
  std::optional<double> loss{};
  double samples_per_s{0};
  std::uint32_t workers{0};
  std::uint64_t generation{0};
  std::optional<duration> left{}; // until the end, when that can be said
};

struct failure_story {
  std::uint32_t rank{0};
  std::int64_t pid{0};     // 0: not known
  std::string_view what{}; // "killed by SIGKILL", "prefetcher threw: ..."
  std::uint64_t step{0};   // 0: before the first step
  duration detected{0};    // fault to decision
  duration recovered{0};   // fault to the first new committed step
  std::uint64_t steps_lost{0};
  std::string_view source{}; // "peer", "memory", "disk"
};

// "step 120/600 (20 %)  loss 0.4312  51.2k samples/s  2 workers  generation 1  12 s left"
[[nodiscard]] std::string tell(const job_progress& now);
// "worker 1 (pid 123) killed by SIGKILL at step 200: detected in 4 ms"
[[nodiscard]] std::string tell_detected(const failure_story& failure);
// "worker 1 (pid 123) killed by SIGKILL at step 200: detected in 4 ms, restored from a peer, training again
// after 180 ms, 1 step lost"
[[nodiscard]] std::string tell_recovered(const failure_story& failure);

// Numbers as people read them: "51.2k", "4 ms", "1.2 s", "3 min 20 s", "1 step", "2 steps".
[[nodiscard]] std::string tell_count(double value);
[[nodiscard]] std::string tell_duration(duration d);
[[nodiscard]] std::string tell_number_of(std::uint64_t count, std::string_view noun);

} // namespace troupe
