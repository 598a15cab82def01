#include "actors/prefetcher/prefetcher_actor.hpp"

#include <caf/all.hpp>

#include "actors/contracts/local_messages.hpp"
#include "actors/remote/wire_message.hpp"
#include "actors/system/errors.hpp"

namespace troupe {
namespace {

struct prefetcher_state {
  static inline const char* name = "prefetcher";
  std::unique_ptr<prefetch_pump> pump;
};

caf::behavior prefetcher(caf::stateful_actor<prefetcher_state>* self, const prefetcher_parts& parts) {
  const auto me = caf::actor_cast<caf::actor>(self);
  prefetch_hooks hooks;
  if (parts.faults != nullptr && !parts.faults->empty()) {
    hooks.before_read = [faults = parts.faults, pieces = parts.accumulate](step_id batch) {
      faults->on_read(step_id{batch.value() / pieces + 1});
    };
  }
  hooks.on_failed = [me](const prefetch_failure& what) { caf::anon_send(me, prefetch_failed{what}); };
  self->state.pump =
      std::make_unique<prefetch_pump>(parts.reader, parts.data, parts.stream, std::move(hooks));
  return {
      [self](const assign_prefetch& m) {
        auto started = self->state.pump->start(m.what);
        if (!started) self->quit(to_caf(started.failure()));
      },
      [self](stop_prefetch) { self->state.pump->stop(); },
      [self](const prefetch_failed& m) { self->quit(to_caf(m.what.cause)); },
  };
}

} // namespace

caf::actor spawn_prefetcher(caf::actor_system& system, const prefetcher_parts& parts) {
  return system.spawn(prefetcher, parts);
}

} // namespace troupe
