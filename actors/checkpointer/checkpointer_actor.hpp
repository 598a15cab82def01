// Checkpointer's actor: writes snapshots to storage, one after another, and says how it went.
//
// Flow:     worker -> write_checkpoint (a leased snapshot) -> [checkpointer] -> storage thread
//           -> settled (on the loop)
// Owns:     the writer. The lease goes with the work and is freed on the storage thread.
// Runs on:  the event loop; every file call on the storage executor, in order.
// Fails:    a failed write is reported and training goes on; the older version stays the newest.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include <caf/fwd.hpp>

#include "runtime/checkpoint/checkpoint_writer.hpp"
#include "runtime/seams/clock.hpp"
#include "runtime/seams/executor.hpp"
#include "runtime/seams/storage.hpp"
#include "runtime/wire/control.hpp"

namespace troupe {

struct checkpointer_parts {
  executor& loop;
  executor& storage_thread;
  storage& files;
  const clock_seam& clock;
  writer_settings settings;
  // Digest of the state in a snapshot (CONTRACT: state_digest). Called on the storage thread.
  std::function<std::string(const snapshot&)> state_digest;
  // One for each write_checkpoint, on the loop: written or failed, and the slot is free. Not an answer to the
  // sender, which may have failed meanwhile.
  std::function<void(const wire::checkpoint_report&)> settled;
};

[[nodiscard]] caf::actor spawn_checkpointer(caf::actor_system& system, const checkpointer_parts& parts);

} // namespace troupe
