#include "transports/two_level/level_plan.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "runtime/base/invariant.hpp"
#include "runtime/base/text_parts.hpp"
#include "transports/two_level/limits.hpp"

namespace troupe {
namespace {

error none(std::string why) {
  return {errc::bad_argument, std::move(why)};
}

std::string without_shards(std::uint32_t first_rank, std::uint32_t ranks) {
  return "the workers of one host (ranks " + std::to_string(first_rank) + ".." +
         std::to_string(first_rank + ranks - 1) + ") hold no shards";
}

bool read_count(std::string_view text, std::uint32_t& into) {
  return read_number(text, into) && into > 0;
}

} // namespace

expected<level_plan> level_plan::make(std::uint32_t shards, std::span<const std::uint32_t> ranks_of_hosts) {
  const auto world = std::accumulate(ranks_of_hosts.begin(), ranks_of_hosts.end(), 0U);
  if (world == 0 || world > limits::workers_max)
    return none("a world of " + std::to_string(world) + " is not in 1.." +
                std::to_string(limits::workers_max));
  const auto cuts = even_cuts(shards, world);
  level_plan made;
  std::uint32_t rank = 0;
  for (const auto ranks : ranks_of_hosts) {
    if (ranks == 0) return none("a host has no worker");
    const auto first = cuts.at[rank];
    const auto nodes = owned_nodes(shards, first, cuts.at[rank + ranks] - first).size();
    if (nodes == 0) return none(without_shards(rank, ranks));
    made.hosts.push_back({rank, ranks, static_cast<std::uint32_t>(nodes)});
    rank += ranks;
  }
  return made;
}

expected<level_plan> level_plan::make(const collective_shape& shape) {
  if (shape.group_bytes > 0) return none("the job has rank groups, which two levels have not");
  if (shape.members.size() != shape.world || shape.world == 0) return none("the members are not known");
  std::vector<std::uint32_t> ranks_of_hosts;
  std::vector<std::uint32_t> seen;
  for (const auto& member : shape.members) {
    if (!seen.empty() && seen.back() == member.host) {
      ++ranks_of_hosts.back();
      continue;
    }
    if (std::ranges::find(seen, member.host) != seen.end())
      return none("workers of one host do not follow one another");
    seen.push_back(member.host);
    ranks_of_hosts.push_back(1);
  }
  const bool shared = std::ranges::any_of(ranks_of_hosts, [](auto ranks) { return ranks > 1; });
  if (!shared) return none("no two workers share a host");
  return make(shape.shards, ranks_of_hosts);
}

std::uint32_t level_plan::host_of(std::uint32_t rank) const {
  const auto after = std::ranges::upper_bound(hosts, rank, {}, &host::first);
  invariant(after != hosts.begin(), "LP-1: every rank is on a host");
  return static_cast<std::uint32_t>(after - hosts.begin()) - 1;
}

collective_shape level_plan::inside(const collective_shape& whole, std::uint32_t number) const {
  const auto& own = hosts[number];
  const auto cuts = even_cuts(whole.shards, whole.world);
  const auto first = cuts.at.begin() + own.first;
  auto shape = whole;
  shape.members.clear();
  shape.world = own.ranks;
  shape.cuts.assign(first, first + own.ranks + 1);
  shape.group_bytes = std::clamp((2 * whole.elements * sizeof(float) + 4095) / 4096 * 4096,
                                 limits::level_handing_bytes_min, limits::level_handing_bytes_max);
  return shape;
}

collective_shape level_plan::between(const collective_shape& whole) const {
  const auto cuts = even_cuts(whole.shards, whole.world);
  auto shape = whole;
  shape.members.clear();
  shape.cuts = {0};
  for (const auto& each : hosts) {
    shape.members.push_back(whole.members[each.first]);
    shape.cuts.push_back(cuts.at[each.first + each.ranks]);
  }
  shape.world = static_cast<std::uint32_t>(hosts.size());
  return shape;
}

std::string to_text(std::span<const level_plan::host> hosts) {
  std::string text;
  for (std::size_t at = 0; at < hosts.size();) {
    auto same = at;
    while (same < hosts.size() && hosts[same].ranks == hosts[at].ranks)
      ++same;
    text += (text.empty() ? "" : ",") + std::to_string(hosts[at].ranks);
    if (same - at > 1) text += "*" + std::to_string(same - at);
    at = same;
  }
  return text;
}

std::optional<std::vector<std::uint32_t>> parse_hosts(std::string_view text, std::uint32_t world) {
  std::vector<std::uint32_t> ranks;
  std::uint64_t total = 0;
  while (!text.empty()) {
    const auto part = next_part(text, ',');
    const auto star = part.find('*');
    std::uint32_t each = 0;
    std::uint32_t times = 1;
    if (!read_count(part.substr(0, star), each)) return std::nullopt;
    if (star != std::string_view::npos && !read_count(part.substr(star + 1), times)) return std::nullopt;
    total += std::uint64_t{each} * times;
    if (total > world) return std::nullopt;
    ranks.insert(ranks.end(), times, each);
  }
  if (total != world) return std::nullopt;
  return ranks;
}

} // namespace troupe
