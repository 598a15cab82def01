// Actor runtime: one CAF actor system that lives on an event loop, real or simulated.
//
// Owns:     the actor system, its scheduler and its clock; no thread.
// Runs on:  the executor given. Made, stopped and destroyed on that loop's thread, or once it has ended.
//           Messages may be sent from any thread; delayed messages and requests from actors only.
// Fails:    an exception in an actor ends that actor, with its code and text as exit reason (AS-3).
// Invariants (AS-1 .. AS-4 in loop_coordinator.hpp):
//   AS-5    `stop` ends every actor and returns; it does not wait for the loop, a thread or a clock, and runs
//           no handler of a message that still waits.
//   AS-6    destruction never hangs: what cannot be ended is named in the log and left behind.
// Why:      docs/design/0006-one-loop-actor-scheduler.md
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "runtime/base/log.hpp"
#include "runtime/seams/clock.hpp"
#include "runtime/seams/executor.hpp"

namespace caf {
class actor_system;
}

namespace troupe {

struct actor_runtime_settings {
  std::size_t messages_per_turn{32};  // that one actor handles before the next one runs
  std::size_t actors_per_turn{16};    // that run before the loop's other work does
  std::size_t stop_runs_max{1000000}; // bound on the work of `stop`
};

struct actor_runtime_counters {
  std::uint64_t turns{0};
  std::uint64_t resumed{0};
  std::uint64_t exceptions{0};
  std::size_t alive{0};
};

class actor_runtime {
public:
  actor_runtime(executor& loop, clock_seam& clock, log_sink& log, actor_runtime_settings settings = {});
  ~actor_runtime();
  actor_runtime(const actor_runtime&) = delete;
  actor_runtime& operator=(const actor_runtime&) = delete;

  [[nodiscard]] caf::actor_system& system();
  [[nodiscard]] executor& loop();
  [[nodiscard]] clock_seam& clock();
  [[nodiscard]] log_sink& log();
  // Kills every actor and runs what that sets off. Not from inside an actor. False: something would not end
  // (named in the log). Idempotent; afterwards no actor runs any more.
  bool stop();
  [[nodiscard]] actor_runtime_counters counters() const;

private:
  struct state;
  std::unique_ptr<state> state_;
};

} // namespace troupe
