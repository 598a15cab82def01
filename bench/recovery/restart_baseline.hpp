// Restart baseline: what a job without supervision does about a dead worker: everything ends, and starts
// again from the newest checkpoint on disk.
#pragma once

#include "bench/recovery/recovery_plan.hpp"
#include "bench/support/job_runner.hpp"

namespace troupe::bench {

// Starts the job, kills (SIGKILL) all of its processes once a checkpoint is on disk, starts it again with
// `--resume auto`: once, the times of that.
[[nodiscard]] expected<void> restart_once(job_runner& runner, const recovery_scenario& what,
                                          strike_samples& into);

} // namespace troupe::bench
