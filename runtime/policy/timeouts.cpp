#include "runtime/policy/timeouts.hpp"

#include <algorithm>
#include <array>

#include "runtime/base/units.hpp"

namespace troupe {
namespace {

using namespace std::chrono_literals;

constexpr int hang_factor = 10; // a step this many times the typical one is not merely slow

struct relation {
  std::string_view name;
  std::string_view lower_name;
  duration lower;
  std::string_view upper_name;
  duration upper;
  bool may_equal;
};

std::array<relation, 14> relations_of(const timeouts& t) {
  return {{
      {"TO-1", "2 x heartbeat_interval", 2 * t.heartbeat_interval, "path_grace", t.path_grace, false},
      {"TO-2", "tick_interval", t.tick_interval, "heartbeat_interval", t.heartbeat_interval, true},
      {"TO-3", "path_grace", t.path_grace, "lease", t.lease, false},
      {"TO-4", "lease + 2 x tick_interval", t.lease + 2 * t.tick_interval, "2 x detect_after",
       2 * t.detect_after, false},
      {"TO-5", "2 x lease", 2 * t.lease, "hang_floor", t.hang_floor, false},
      {"TO-6", "2 x hang_floor", 2 * t.hang_floor, "collective_last_net", t.collective_last_net, true},
      {"TO-7", "2 x lease", 2 * t.lease, "orphan_grace", t.orphan_grace, false},
      {"TO-8", "2 x lease", 2 * t.lease, "request_deadline", t.request_deadline, false},
      {"TO-9", "handshake_deadline", t.handshake_deadline, "join_deadline", t.join_deadline, false},
      {"TO-10", "exchange_deadline", t.exchange_deadline, "join_deadline", t.join_deadline, false},
      {"TO-11", "lease", t.lease, "report_deadline", t.report_deadline, false},
      {"TO-11", "report_deadline", t.report_deadline, "join_deadline", t.join_deadline, false},
      {"TO-12", "join_deadline", t.join_deadline, "members_wait", t.members_wait, false},
      {"TO-13", "orphan_grace", t.orphan_grace, "join_deadline", t.join_deadline, false},
  }};
}

} // namespace

timeouts timeouts::derive(duration detect_after) {
  const duration d = detect_after;
  const auto floored = [](duration value, duration floor) { return std::max(value, floor); };
  timeouts t;
  t.detect_after = d;
  t.heartbeat_interval = d / 10;
  t.tick_interval = d / 20;
  t.path_grace = 3 * d / 10;
  t.stall_gap = 3 * d / 10;
  t.lease = d;
  t.hang_floor = 3 * d;
  t.first_step_deadline = floored(30 * d, 30s);
  t.collective_last_net = floored(10 * d, 5s);
  t.orphan_grace = 5 * d;
  t.handshake_deadline = floored(2 * d, 2s);
  t.exchange_deadline = floored(5 * d, 5s);
  t.join_deadline = floored(30 * d, 30s);
  t.request_deadline = floored(5 * d, 2s);
  t.report_deadline = floored(3 * d, 2s);
  t.transfer_deadline = floored(10 * d, 10s);
  t.members_wait = floored(60 * d, 60s);
  t.shutdown_grace = floored(5 * d, 3s);
  t.drain_deadline = floored(60 * d, 60s);
  return t;
}

expected<void> timeouts::validate() const {
  if (detect_after < detect_after_min || detect_after > detect_after_max)
    return error{errc::bad_argument, "detect_after " + format_duration(detect_after) + ": out of range; " +
                                         "accepted: " + format_duration(detect_after_min) + " to " +
                                         format_duration(detect_after_max)};
  for (const auto& r : rows()) {
    if (r.value <= duration::zero())
      return error{errc::bad_argument, std::string{r.name} + " must be longer than 0"};
  }
  for (const auto& r : relations_of(*this)) {
    if (r.lower < r.upper || (r.may_equal && r.lower == r.upper)) continue;
    return error{errc::bad_argument, std::string{r.lower_name} + " (" + format_duration(r.lower) +
                                         ") must be " + (r.may_equal ? "at most " : "shorter than ") +
                                         std::string{r.upper_name} + " (" + format_duration(r.upper) + ") " +
                                         std::string{r.name}};
  }
  return {};
}

duration timeouts::hang_bound(duration typical_step, duration longest_step) const {
  return std::max({hang_floor, hang_factor * typical_step, 2 * longest_step});
}

duration timeouts::collective_bound(duration typical_step, duration longest_step) const {
  return std::max(collective_last_net, 2 * hang_bound(typical_step, longest_step));
}

std::vector<timeouts::row> timeouts::rows() const {
  return {
      {"detect_after", detect_after, "the setting"},
      {"heartbeat_interval", heartbeat_interval, "between two heartbeats"},
      {"tick_interval", tick_interval, "between two looks of the detector"},
      {"path_grace", path_grace, "silence after a path error: dead"},
      {"stall_gap", stall_gap, "the detector itself was late: that time is no silence"},
      {"lease", lease, "silence: dead or stopped"},
      {"hang_floor", hang_floor, "heartbeats but no step: hung (grows with step times)"},
      {"first_step_deadline", first_step_deadline, "the same while step times are unknown"},
      {"collective_last_net", collective_last_net, "a collective gives up by itself (grows with step times)"},
      {"orphan_grace", orphan_grace, "a worker without a director ends itself"},
      {"handshake_deadline", handshake_deadline, "a path that does not open is lost"},
      {"exchange_deadline", exchange_deadline, "rendezvous: token and addresses"},
      {"join_deadline", join_deadline, "from a process's start to its readiness"},
      {"request_deadline", request_deadline, "an actor's request"},
      {"report_deadline", report_deadline, "survivors report what they hold"},
      {"transfer_deadline", transfer_deadline, "state transfer without a byte arriving"},
      {"members_wait", members_wait, "waiting for replacements below workers-min"},
      {"shutdown_grace", shutdown_grace, "from stop to SIGKILL"},
      {"drain_deadline", drain_deadline, "the last checkpoint's writing"},
  };
}

std::string timeouts::table() const {
  constexpr std::size_t name_width = 22;
  constexpr std::size_t value_width = 8;
  std::string text;
  for (const auto& r : rows()) {
    const std::string value = format_duration(r.value);
    text += r.name;
    text.append(name_width - r.name.size(), ' ');
    if (value.size() < value_width) text.append(value_width - value.size(), ' ');
    text += value + "  " + std::string{r.what} + "\n";
  }
  return text;
}

} // namespace troupe
