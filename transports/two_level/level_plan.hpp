// Level plan: whether a sum may go in two levels, and which sums those are. Pure functions.
//
// In:       the number of shards; the hosts of the ranks.
// Out:      for each host the node of the canonical tree that its ranks own together; the shape of a sum
//           over the hosts that performs the tree's other additions.
// Fails:    errc::bad_argument: there is none; the text says why, to whoever runs the job.
// Invariants:
//   LP-1    a plan exists only where the ranks of every host follow one another and own, together, exactly
//           one node of the tree, and where some number of shards, one contribution a host, gives the very
//           additions above those nodes. So both levels together are the canonical sum, to the bit.
//   LP-2    inside a host the ranks' shares are those that they have in the whole (CP-1).
// Why:      docs/design/0047-sums-in-two-levels.md
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/error.hpp"
#include "runtime/policy/canonical_plan.hpp"
#include "runtime/seams/collective.hpp"

namespace troupe {

struct level_plan {
  struct host {
    std::uint32_t first{0}; // rank; it speaks for the host
    std::uint32_t ranks{0};
    shard_interval node;
  };
  std::vector<host> hosts;
  std::uint32_t shards_between{0};

  // Ranks of each host, in order.
  [[nodiscard]] static expected<level_plan> make(std::uint32_t shards,
                                                 std::span<const std::uint32_t> ranks_of_hosts);
  // None also where no host has two ranks, and where the shape asks for rank groups, which the levels do
  // not have. One host will do: it need not be the director's.
  [[nodiscard]] static expected<level_plan> make(const collective_shape& shape);

  [[nodiscard]] std::uint32_t host_of(std::uint32_t rank) const; // index
  [[nodiscard]] collective_shape inside(const collective_shape& whole, std::uint32_t host) const;
  [[nodiscard]] collective_shape between(const collective_shape& whole) const;
};

// "2,2,1": ranks of hosts that follow one another, runs of equal ones as "2*64".
[[nodiscard]] std::string to_text(std::span<const level_plan::host> hosts);
[[nodiscard]] std::optional<std::vector<std::uint32_t>> parse_hosts(std::string_view text,
                                                                    std::uint32_t world);

} // namespace troupe
