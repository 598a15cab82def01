// Flight overlap: of a rank's dump, how much of each sum went on during backward.
//
// In:       the records of sums and of their parts (flight_recorder.hpp, FL-3).
// Out:      one line a step; pure.
// Invariants:
//   FO-1    a step whose records are not all there (the ring has lost some, or it did not end) is left out.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/base/ids.hpp"
#include "runtime/base/time.hpp"
#include "runtime/telemetry/flight_dump.hpp"

namespace troupe {

// Times since the step's first part was begun.
struct overlap_part {
  std::uint64_t bytes{0};
  duration began{0}, ended{0}; // its sum alone: nothing was under way before it any more
};
struct overlapped_step {
  rank_id rank;
  step_id step;
  std::vector<overlap_part> parts; // that were begun during backward, in order
  duration backward_end{0};        // the sum was called
  duration sum_end{0};

  // Of the time that parts and sum took, what the rank did not wait for; 0 to 1.
  [[nodiscard]] double hidden() const;
};

// The newest `count` steps of the dump that were summed in parts, oldest first.
[[nodiscard]] std::vector<overlapped_step> overlap_of(const flight_dump& dump, std::size_t count);
// "step 22 rank 1: parts 0.00-0.91 ms (4MiB), 0.95-1.90 ms (4MiB); backward ends at 2.10 ms, the sum at
// 2.60 ms: 79 % hidden".
[[nodiscard]] std::string to_text(const overlapped_step& what);

} // namespace troupe
