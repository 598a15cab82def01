// Reporter's actor: a job report behind a mailbox.
#pragma once

#include <memory>

#include <caf/fwd.hpp>

#include "actors/reporter/job_report.hpp"

namespace troupe {

// The report is shared with whoever writes the summary at the end; touched on the event loop only.
[[nodiscard]] caf::actor spawn_reporter(caf::actor_system& system, std::shared_ptr<job_report> report);

} // namespace troupe
