// Summary: what a job amounts to, one JSON object (CONTRACT: summary), written whatever the end was.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/seams/storage.hpp"
#include "runtime/telemetry/latency_histogram.hpp"

namespace troupe {

struct failure_summary {
  std::string kind{};  // "process_died", "actor_failed", "hang", ...
  std::string cause{}; // in words, the root cause first
  std::uint32_t rank{0};
  std::uint64_t step{0};
  std::optional<double> detected_ms{};  // fault to the director's decision; absent: not known
  std::optional<double> recovered_ms{}; // fault to the first new committed step; absent: never
  std::uint64_t steps_lost{0};
  std::string source{}; // "peer", "memory", "disk"; empty: nothing was restored
};

// Written as 0, or null where marked optional, when there is nothing to say: every field is always there.
struct job_summary {
  std::string program;
  std::string version;
  std::uint64_t seed{0};
  std::string device;
  std::uint32_t shards{0};
  std::uint32_t workers_start{0};
  std::uint32_t workers_end{0};
  std::uint64_t generations{0};
  std::uint64_t steps_committed{0};
  std::uint64_t samples_committed{0};
  std::optional<double> loss_first{};
  std::optional<double> loss_last{};
  std::optional<double> accuracy{};
  std::string weights_digest;
  std::string state_digest;
  duration wall{0};
  double samples_per_s{0};
  latency_histogram step_time;
  latency_histogram comm_wait;
  latency_histogram data_wait;
  std::uint64_t checkpoints_written{0};
  std::uint64_t checkpoints_failed{0};
  std::uint64_t checkpoint_bytes{0};
  latency_histogram checkpoint_stall;
  std::vector<failure_summary> failures;
  std::uint64_t restarts{0};
  bool survivors_kept{true};
  double goodput{0};
  std::string exit_reason;
  // In the steady state, of the worker that used most.
  std::optional<double> allocations_per_step{};      // on its device, reader and storage threads
  std::optional<double> control_allocations_per_s{}; // on its event loop
  std::optional<double> page_faults_per_step{};
  std::optional<double> cpu_ms_per_step{}; // of all workers together
};

[[nodiscard]] std::string to_json(const job_summary& summary);
// Replaces `path` whole (a temporary file beside it, renamed). Blocks: on the storage executor, or at the
// end of a `main`. What is not a regular file, such as /dev/stdout, is written directly.
expected<void> write_summary(storage& files, const std::string& path, const job_summary& summary);

} // namespace troupe
