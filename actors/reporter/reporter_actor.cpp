#include "actors/reporter/reporter_actor.hpp"

#include <caf/all.hpp>

#include "actors/contracts/director_messages.hpp"
#include "actors/remote/wire_message.hpp"

namespace troupe {

caf::actor spawn_reporter(caf::actor_system& system, std::shared_ptr<job_report> report) {
  return system.spawn([report = std::move(report)](caf::event_based_actor*) -> caf::behavior {
    return {
        [report](const record_message& m) { report->on_record(*m.what); },
        [](const reports_done& m) { (*m.then)(); },
    };
  });
}

} // namespace troupe
