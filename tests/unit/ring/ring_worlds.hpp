// Ring worlds: the ranks of a generation over the ring, each with an event loop and a device of its own.
#pragma once

#include <memory>

#include "tests/unit/collective/collective_worlds.hpp"
#include "transports/ring/ring_collective.hpp"

namespace troupe::worlds {

// One loop and one loopback hub for all, a device's thread and a lane's for each.
[[nodiscard]] std::unique_ptr<world> ring_threads(ring_settings settings);
// Forked processes, each with sessions over UCX (tcp). Fork before this process has threads or UCX.
[[nodiscard]] std::unique_ptr<world> ring_processes(ring_settings settings);

} // namespace troupe::worlds
