#include "runtime/policy/broadcast_plan.hpp"

#include <algorithm>

namespace troupe {

std::vector<broadcast_hop> broadcast_plan(std::span<const rank_id> sources,
                                          std::span<const rank_id> joiners) {
  std::vector<broadcast_hop> hops;
  if (sources.empty()) return hops;
  hops.reserve(joiners.size());
  std::vector<rank_id> holders{sources.begin(), sources.end()};
  for (std::uint32_t round = 1; !joiners.empty(); ++round) {
    const auto sending = std::min(holders.size(), joiners.size());
    for (std::size_t i = 0; i < sending; ++i)
      hops.push_back({holders[i], joiners[i], round});
    holders.insert(holders.end(), joiners.begin(), joiners.begin() + static_cast<std::ptrdiff_t>(sending));
    joiners = joiners.subspan(sending);
  }
  return hops;
}

} // namespace troupe
