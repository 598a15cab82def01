// Run: a training graph as a real program: processes, UCX, files, signals.
//
// One program plays every role. Started by a person it is the director, which starts workers as copies of
// itself; those find their role in the environment (TROUPE_ROLE), the token behind an inherited descriptor.
// Returns: the exit code (CONTRACT: 0 finished, 2 usage, 3 restart budget, 4 too few workers, 5 bad data,
// 6 no loadable checkpoint, 7 refused, 70 a bug of ours; 128 + N when ended by signal N).
#pragma once

#include "actors/graph/training_graph.hpp"

namespace troupe {

[[nodiscard]] int run(const training_graph& graph, int argc, char** argv);

} // namespace troupe
