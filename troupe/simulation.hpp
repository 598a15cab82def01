// Troupe in simulation: what a test includes that runs its own graph under faults.
//
// Brings the simulator: a whole cluster in one process and one thread, one seed a run, with the real actors,
// messages, checkpoints and supervision. Link `troupe::simulation`. How to: docs/guide/fault-injection.md.
#pragma once

#include "actors/graph/training_graph.hpp"
#include "cli/sim/simulator.hpp"
