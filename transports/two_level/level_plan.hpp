// Level plan: whether a sum may go in two levels, and which sums those are. Pure functions.
//
// In:       the number of shards; the hosts of the ranks.
// Out:      for each host how many nodes of the canonical tree its ranks own together; the shape of the sums
//           inside it, one a node, and of the sum of all those over the hosts.
// Fails:    errc::bad_argument: there is none; the text says why, to whoever runs the job.
// Invariants:
//   LP-1    a plan exists where the ranks of every host follow one another and hold shards. A host owns the
//           maximal nodes of the tree that its ranks hold: inside it the additions below them are done,
//           between the hosts, which contribute them, those above. So both levels are the canonical sum.
//   LP-2    inside a host the ranks' shares are those that they have in the whole (CP-1).
// Why:      docs/design/0047-sums-in-two-levels.md, docs/design/0050-hosts-of-several-nodes.md
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
    std::uint32_t nodes{0};
  };
  std::vector<host> hosts;

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
