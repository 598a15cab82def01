// Supervisor: keeps a list of child actors alive, as `supervision` decides.
//
// Flow:     parent -> stop, progress -> [supervisor] -> exits to children; downs from them
// Owns:     its children: they end with it, however it ends.
// Runs on:  its actor; never blocks. Waits for children by monitor, never on trust.
// Fails:    ends with the escalated error (root cause first), which its own supervisor sees as exit reason.
// Invariants (SV-1 .. SV-9 in runtime/policy/supervision.hpp):
//   SA-1    every start is announced once, after the new child exists and before any later one.
//   SA-2    a factory that throws is a child that failed, with that error.
//   SA-3    no child outlives its supervisor: a killed supervisor kills them.
#pragma once

#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include <caf/actor.hpp>
#include <caf/fwd.hpp>

#include "runtime/base/error.hpp"
#include "runtime/policy/supervision.hpp"

namespace troupe {

struct supervised_child {
  child_spec spec;
  std::function<caf::actor(caf::actor_system&)> spawn; // may throw: SA-2
};

// What the listener is told, so that peers learn the new handle. Called on the supervisor's turn.
struct child_change {
  const std::string& id;
  const caf::actor& before; // invalid at the first start
  const caf::actor& after;
  const std::optional<error>& cause; // the former life's own failure, if it failed
};

struct supervisor_parts {
  supervision_settings settings;
  std::vector<supervised_child> children; // started in this order
  std::function<void(const child_change&)> listener;
};

// Told to a supervisor whenever its children's work got further: former failures are forgiven (SV-5).
struct work_progressed {
  static constexpr std::string_view wire_name = "troupe.work_progressed";
};

// Starts the children at once. An exit (user_shutdown) stops them in reverse order, each within its grace,
// then ends the supervisor with that reason.
[[nodiscard]] caf::actor spawn_supervisor(caf::actor_system& system, supervisor_parts parts);

} // namespace troupe
