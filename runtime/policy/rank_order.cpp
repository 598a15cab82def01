#include "runtime/policy/rank_order.hpp"

#include <algorithm>

namespace troupe {

std::vector<placed_rank> order_ranks(std::span<const std::string_view> machines, std::string_view director) {
  struct host {
    std::string_view machine;
    std::vector<std::size_t> members{};
  };
  std::vector<host> hosts{{director}};
  for (std::size_t member = 0; member < machines.size(); ++member) {
    auto at = std::ranges::find(hosts, machines[member], &host::machine);
    if (at == hosts.end()) at = hosts.insert(hosts.end(), {machines[member]});
    at->members.push_back(member);
  }
  std::stable_sort(hosts.begin() + 1, hosts.end(),
                   [](const host& a, const host& b) { return a.members.size() > b.members.size(); });
  std::vector<placed_rank> ranks;
  for (std::uint32_t number = 0; number < hosts.size(); ++number)
    for (const auto member : hosts[number].members)
      ranks.push_back({member, number});
  return ranks;
}

} // namespace troupe
