// Event loop: the one thread on which actors, transports, timers and child exits run.
//
// Flow:     any thread -> post -> [event loop] -> task
// Owns:     an Asio io_context (transports attach their descriptors to `io()`), the ring of posted tasks.
// Runs on:  the thread that calls `run`. Nothing that runs here may block.
// Fails:    an exception that escapes a task or a handler is a bug (EL-2).
// Invariants:
//   EL-1    tasks run one at a time, in the order posted, never inside `post`.
//   EL-2    no exception escapes a task.
//   EL-3    posted tasks do not starve descriptors and timers: one turn runs what was posted before it began,
//           and what that posted.
//   EL-4    posting does not allocate once the ring has grown to the largest burst.
#pragma once

#include <memory>

#include "runtime/base/time.hpp"
#include "runtime/seams/executor.hpp"

namespace boost::asio {
class io_context;
}

namespace troupe {

class event_loop final : public executor {
public:
  event_loop();
  ~event_loop() override; // tasks that have not run are destroyed unrun
  event_loop(const event_loop&) = delete;
  event_loop& operator=(const event_loop&) = delete;

  void post(task work) override; // any thread
  // Runs until `stop`, also when there is nothing to do. May be called again afterwards; what had not run
  // by then runs first. A stop before `run` makes it return at once.
  void run();
  void stop(); // any thread
  // Before it sleeps, `run` looks that long whether there is something to do: sooner there, at the cost of a
  // core. 0, the default: never. On the loop, or before `run`.
  void spin_for(duration longest);
  // `look`: what it asks then, beside its descriptors; true: there was something, and it was done.
  void look_with(inline_function<bool()> look);
  // Runs until `done` holds (asked after each handler); false when `limit` passed or `stop` was called
  // before that. For a main's or a test's own thread.
  [[nodiscard]] bool run_until(inline_function<bool()> done, duration limit);

  [[nodiscard]] boost::asio::io_context& io(); // include <boost/asio/io_context.hpp> to use it
  [[nodiscard]] bool runs_here() const;        // is the caller inside `run`?

private:
  struct state;
  std::unique_ptr<state> state_;
};

} // namespace troupe
