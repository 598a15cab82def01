// Snapshot slots: memory for copies of the state, allocated and touched once.
//
// Flow:     step engine copies the state into a slot -> checkpoint_writer -> the slot is free again
// Owns:     `count` slots of `state_bytes`.
// Runs on:  any thread; taking never blocks and never allocates.
// Fails:    no free slot: the caller skips this checkpoint (counted) and tries at the next one.
// Invariants:
//   CK-3    a slot being written is never reused: it is free only once its lease has gone.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "runtime/base/buffer_pool.hpp"
#include "runtime/base/ids.hpp"
#include "runtime/checkpoint/manifest.hpp"

namespace troupe {

// A state at one step, on its way to storage.
struct snapshot {
  lease state; // [state_layout::state_bytes()] or more
  checkpoint_metadata metadata;
};

class snapshot_slots {
public:
  snapshot_slots(std::size_t count, std::size_t state_bytes);

  // An empty lease where all slots are being written.
  [[nodiscard]] lease try_take(step_id step);
  [[nodiscard]] std::size_t available() const { return pool_.available(); }
  [[nodiscard]] std::size_t count() const { return pool_.count(); }
  [[nodiscard]] std::uint64_t refused() const { return refused_.load(std::memory_order_relaxed); }
  [[nodiscard]] step_id last_refused() const {
    return step_id{last_refused_.load(std::memory_order_relaxed)};
  }

private:
  buffer_pool pool_;
  std::atomic<std::uint64_t> refused_{0};
  std::atomic<std::uint64_t> last_refused_{0};
};

} // namespace troupe
