// Time-outs: every one is derived from the single setting `detect_after`.
//
// In:       detect_after (--detect-after, default 1s).
// Out:      the durations below; `table` prints them, `validate` refuses an order that cannot work.
// Fails:    errc::bad_argument names the broken relation with both values.
// Invariants (relations that `validate` checks; each is quoted in its error):
//   TO-1    two lost heartbeats are no verdict:            2 x heartbeat_interval < path_grace
//   TO-2    the detector looks at least once a heartbeat:  tick_interval <= heartbeat_interval
//   TO-3    a path error shortens a lease:                 path_grace < lease
//   TO-4    a stopped process is found in time:            lease + 2 x tick_interval < 2 x detect_after
//   TO-5    dead is told before hung:                      2 x lease < hang_floor
//   TO-6    the collective's own time-out is the last net: 2 x hang_floor <= collective_last_net
//   TO-7    a late director orphans nobody:                2 x lease < orphan_grace
//   TO-8    a failure answers a request before its clock:  2 x lease < request_deadline
//   TO-9    a handshake ends within a join:                handshake_deadline < join_deadline
//   TO-10   an exchange ends within a join:                exchange_deadline < join_deadline
//   TO-11   survivors report before they are replaced:     lease < report_deadline < join_deadline
//   TO-12   a replacement can join while the job waits:    join_deadline < members_wait
//   TO-13   an orphan is gone before its successor waits:  orphan_grace < join_deadline
// Why:      docs/design/0010-failure-detection.md
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/error.hpp"
#include "runtime/base/time.hpp"

namespace troupe {

struct timeouts {
  duration detect_after{};

  duration heartbeat_interval{};  // between two heartbeats of a process
  duration tick_interval{};       // between two looks of the detector
  duration path_grace{};          // silence after a path error that makes it a verdict
  duration stall_gap{};           // a gap between looks that counts as a stall of the observer itself
  duration lease{};               // silence that makes a verdict on its own
  duration hang_floor{};          // no step for at least this long, whatever step times are, before "hung"
  duration first_step_deadline{}; // the same before step times are known
  duration collective_last_net{}; // a collective gives up by itself; supervision aborts it long before
  duration orphan_grace{};        // a worker without a director ends itself
  duration handshake_deadline{};  // transport: a path that does not open is lost
  duration exchange_deadline{};   // rendezvous: authentication and address exchange
  duration join_deadline{};       // from a process's start to its readiness
  duration request_deadline{};    // an actor's request
  duration report_deadline{};     // survivors say what they hold after a generation ended
  duration transfer_deadline{};   // state sent to a replacement, without any byte arriving
  duration members_wait{};        // the job waits for replacements below workers_min
  duration shutdown_grace{};      // from "stop" to SIGKILL
  duration drain_deadline{};      // the last checkpoint's writing at the job's end

  [[nodiscard]] static timeouts derive(duration detect_after);
  [[nodiscard]] expected<void> validate() const;

  // No step for longer than this is a hang: max(hang_floor, 10 x typical, 2 x longest recent step).
  [[nodiscard]] duration hang_bound(duration typical_step, duration longest_step) const;
  // A collective that waits for longer than this gives up although nobody aborted it.
  [[nodiscard]] duration collective_bound(duration typical_step, duration longest_step) const;

  struct row {
    std::string_view name;
    duration value;
    std::string_view what;
  };
  [[nodiscard]] std::vector<row> rows() const; // in the order above
  [[nodiscard]] std::string table() const;     // one line a row, aligned
};

inline constexpr duration detect_after_default = std::chrono::seconds{1};
inline constexpr duration detect_after_min = std::chrono::milliseconds{50};
inline constexpr duration detect_after_max = std::chrono::minutes{10};
inline constexpr duration spin_max = std::chrono::seconds{1}; // as long as a failure may go unnoticed

} // namespace troupe
