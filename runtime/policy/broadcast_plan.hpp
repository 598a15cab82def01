// Broadcast plan: who sends to whom, so that many get what a few hold. A binomial tree over all sources.
//
// Round by round, everyone who holds the bytes sends them to one who does not: the number of holders doubles.
// With b bytes and S sources, J joiners have them after ceil(log2((S + J) / S)) rounds of b bytes each.
//
// Invariants:
//   BC-1    each joiner receives exactly once: from a source, or from a joiner of an earlier round.
//   BC-2    there are at most ceil(log2((S + J) / S)) rounds.
//   BC-3    nobody sends twice in one round, and joiners receive in the order given: who sends to several,
//           sends to them in that order.
// Source:   binomial broadcast, e.g. Chan et al., Collective communication: theory, practice, and
//           experience (2007), section 4.
// Why:      docs/design/0032-state-for-many.md
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "runtime/base/ids.hpp"

namespace troupe {

struct broadcast_hop {
  rank_id from, to;
  std::uint32_t round{0}; // from 1
};

// One hop a joiner, in the order given. Nothing where nobody holds anything. O(sources + joiners).
[[nodiscard]] std::vector<broadcast_hop> broadcast_plan(std::span<const rank_id> sources,
                                                        std::span<const rank_id> joiners);

} // namespace troupe
