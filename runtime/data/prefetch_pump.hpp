// Prefetch pump: keeps one rank's next batches ready.
//
// Flow:     dataset -> [prefetch pump] -> batch stream -> step engine
// Owns:     the place in the assignment; it borrows the stream's buffers.
// Runs on:  the reader executor, one batch a task, at most one such task waiting. Control calls come from one
//           other thread and only post.
// Fails:    an exception or a dataset's error ends the assignment: `on_failed` gets its text once; the pump
//           rests until the next `start`.
// Invariants:
//   PF-1    outstanding batches never exceed the credit granted.
//   PF-2    batches leave in step order, each of this rank's shards only.
//   PF-3    what a batch holds depends on the assignment alone: not on earlier ones, failures or timing.
//   PF-4    after `stop`, or a newer `start`, nothing of the older assignment is published any more, once the
//           reader has reached that call; before that, BS-1 keeps it from the consumer.
//   PF-5    after the pump's destructor returns, neither `on_failed` is called nor a batch published by a
//           task that starts later. It never waits for a read.
// Why:      docs/rooms/data.md
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "runtime/base/error.hpp"
#include "runtime/base/ids.hpp"
#include "runtime/data/batch_stream.hpp"
#include "runtime/data/dataset.hpp"
#include "runtime/seams/executor.hpp"

namespace troupe {

// What one rank reads in one generation. Sample i of step k has running number k * global_batch + i and
// belongs to shard i / (global_batch / shards).
struct batch_assignment {
  generation_id generation;
  step_id first_step;
  step_id last_step; // exclusive
  std::uint32_t first_shard{0};
  std::uint32_t shard_count{0}; // this rank's: [first_shard, first_shard + shard_count)
  std::uint32_t shards{0};      // of the whole global batch; divides it
  std::uint32_t global_batch{0};
  std::uint64_t seed{0};

  [[nodiscard]] std::uint32_t samples_per_shard() const { return global_batch / shards; }
};

// errc::bad_argument names the number that cannot be.
[[nodiscard]] expected<void> check(const batch_assignment& what);

struct prefetch_failure {
  generation_id generation;
  step_id step;
  error cause; // errc::actor_failed for an exception, else the dataset's own code
};

// Both run on the reader's thread and have to own what they use: they may run while the pump is destroyed.
struct prefetch_hooks {
  std::function<void(step_id)> before_read;               // fault injection: may throw
  std::function<void(const prefetch_failure&)> on_failed; // cheap: post it on; must not destroy the pump
};

class prefetch_pump {
public:
  // `reader` outlives every task posted to it; `data` has the stream's number of features.
  prefetch_pump(executor& reader, std::shared_ptr<const dataset> data, std::shared_ptr<batch_stream> into,
                prefetch_hooks hooks);
  ~prefetch_pump();
  prefetch_pump(const prefetch_pump&) = delete;
  prefetch_pump& operator=(const prefetch_pump&) = delete;

  // Ends the assignment before and starts this one. errc::bad_argument: nothing changed.
  [[nodiscard]] expected<void> start(const batch_assignment& what);
  void stop();

private:
  class core;
  std::shared_ptr<core> core_; // shared with the tasks that wait on the reader
};

} // namespace troupe
