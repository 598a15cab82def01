// Checkers: what must be true when a simulated run is over, whatever struck it.
//
// In:       a cluster whose run is over, what a run without faults ended with, what may be expected.
// Out:      findings, one line each; empty: all is right.
// Checked: the job ended well and left no process; the state is the fault-free one, to the bit; every step
// counts once with exactly its samples; generations only grow; the newest complete checkpoint loads and is
// the state of its step; no lease is lost; no more steps were computed again than the scenario allows.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "cli/sim/strikes.hpp"

namespace troupe::sim {

struct reference {
  std::string weights_digest;
  std::string state_digest;
  std::map<std::uint64_t, std::string> checkpoints; // step -> state digest, as written in the manifests
  std::uint64_t events{0};                          // that the run took
};

// Of a run without faults that is over.
[[nodiscard]] reference reference_of(cluster& from);
[[nodiscard]] std::vector<std::string> check(cluster& over, const reference& known,
                                             const expectation& wanted);

} // namespace troupe::sim
