#include "actors/checkpointer/checkpointer_actor.hpp"

#include <caf/all.hpp>

#include "actors/contracts/local_messages.hpp"
#include "actors/remote/wire_message.hpp"

namespace troupe {
namespace {

struct checkpointer_state {
  static inline const char* name = "checkpointer";
  std::shared_ptr<checkpoint_writer> writer;
};

using shared_parts = std::shared_ptr<const checkpointer_parts>;

// On the storage thread: digests, then writes; the slot is free when this returns.
wire::checkpoint_report write_one(const checkpointer_parts& parts, checkpoint_writer& writer,
                                  snapshot& what) {
  const auto began = parts.clock.now();
  what.metadata.state_digest = parts.state_digest(what);
  wire::checkpoint_report report{.generation = what.metadata.generation, .step = what.metadata.step};
  auto written = writer.write(what.metadata, what.state.bytes());
  what.state.release();
  report.write = parts.clock.now() - began;
  if (written) {
    report.outcome = wire::checkpoint_outcome::written;
    report.bytes = written->bytes;
    report.text = written->path;
  } else {
    report.outcome = wire::checkpoint_outcome::failed;
    report.text = written.failure().text;
  }
  return report;
}

caf::behavior checkpointer(caf::stateful_actor<checkpointer_state>* self, const shared_parts& parts) {
  self->state.writer = std::make_shared<checkpoint_writer>(parts->files, parts->settings);
  return {
      [self, parts](const write_checkpoint& m) {
        parts->storage_thread.post([parts, writer = self->state.writer, what = m.what, stall = m.stall] {
          auto report = std::make_shared<wire::checkpoint_report>(write_one(*parts, *writer, *what));
          report->stall = stall;
          parts->loop.post([parts, report] { parts->settled(*report); });
        });
      },
  };
}

} // namespace

caf::actor spawn_checkpointer(caf::actor_system& system, const checkpointer_parts& parts) {
  return system.spawn(checkpointer, std::make_shared<const checkpointer_parts>(parts));
}

} // namespace troupe
