#include "runtime/sim/sim_hosts.hpp"

#include <algorithm>

namespace troupe {
namespace {

duration scaled(duration length, double by) {
  return duration{static_cast<duration::rep>(static_cast<double>(length.count()) * by)};
}

} // namespace

void sim_hosts::set_clock_rate(sim_host_id host, double rate, time_point now) {
  const auto local = local_time(host, now);
  clocks_[host] = {rate, now, local};
}

void sim_hosts::step_clock(sim_host_id host, duration by, time_point now) {
  const auto local = local_time(host, now);
  auto& of = clocks_[host];
  of = {of.rate, now, local + by};
}

time_point sim_hosts::local_time(sim_host_id host, time_point world) const {
  const auto found = clocks_.find(host);
  if (found == clocks_.end()) return world;
  const auto& it = found->second;
  return it.base + scaled(world - it.since, it.rate);
}

duration sim_hosts::world_duration(sim_host_id host, duration local) const {
  const auto found = clocks_.find(host);
  return found == clocks_.end() ? local : scaled(local, 1 / found->second.rate);
}

double sim_hosts::slowness(sim_host_id host) const {
  const auto found = slowness_.find(host);
  return found == slowness_.end() ? 1 : found->second;
}

bool sim_hosts::covers(sim_link link, sim_host_id from, sim_host_id to) {
  return (link.from == every_host || link.from == from) && (link.to == every_host || link.to == to);
}

void sim_hosts::cut(sim_link link, time_point until) {
  obstacles_.push_back({link, until, duration{0}});
}

void sim_hosts::clog(sim_link link, duration each, time_point until) {
  obstacles_.push_back({link, until, each});
}

time_point sim_hosts::departure(sim_host_id from, sim_host_id to, time_point now) const {
  if (from == to) return now;
  auto at = now;
  for (const auto& one : obstacles_) {
    if (one.until <= now || !covers(one.link, from, to)) continue;
    at = one.each > duration{0} ? at + one.each : std::max(at, one.until);
  }
  return at;
}

time_point sim_hosts::uncut(sim_host_id from, sim_host_id to, time_point now) const {
  auto at = now;
  for (const auto& one : obstacles_)
    if (from != to && one.each == duration{0} && covers(one.link, from, to)) at = std::max(at, one.until);
  return at;
}

time_point sim_hosts::reunion(std::span<const sim_host_id> members, time_point begun, time_point now) const {
  const auto inside = [&](sim_host_id host) {
    return host == every_host || std::ranges::find(members, host) != members.end();
  };
  const bool apart = std::ranges::adjacent_find(members, std::ranges::not_equal_to{}) != members.end();
  auto at = now;
  for (const auto& one : obstacles_) {
    if (apart && one.until > now && inside(one.link.from) && inside(one.link.to))
      at = std::max(at, one.each > duration{0} ? begun + one.each : one.until);
  }
  return at;
}

void sim_hosts::heal(time_point now) {
  obstacles_.clear();
  slowness_.clear();
  for (auto& [host, of] : clocks_)
    of = {1, now, local_time(host, now)};
}

} // namespace troupe
