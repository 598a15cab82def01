#include "runtime/checkpoint/snapshot_slots.hpp"

namespace troupe {

snapshot_slots::snapshot_slots(std::size_t count, std::size_t state_bytes)
    : pool_{count, state_bytes} {}

lease snapshot_slots::try_take(step_id step) {
  auto slot = pool_.try_lend();
  if (!slot) {
    refused_.fetch_add(1, std::memory_order_relaxed);
    last_refused_.store(step.value(), std::memory_order_relaxed);
  }
  return slot;
}

} // namespace troupe
