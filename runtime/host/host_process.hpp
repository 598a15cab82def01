// Host processes: the process seam on this machine.
//
// Owns:     its children, each with a process descriptor (pidfd) that the loop watches, and a black box.
// Runs on:  the event loop. Starting one child costs one spawn (the parent's memory is not copied).
// Fails:    `start`: errc::not_found or storage_failed names the program and the system's words;
//           errc::bad_argument where the embedding program ignores SIGCHLD (its children cannot be reaped).
// A child:  inherits standard output and error; reads nothing (/dev/null); has default signal handling, and
//           no descriptor but those named. It outlives a parent that is killed: ending itself is its own
//           duty.
// Invariants:
//   HP-1    a child is reaped in the same turn of the loop that notices its end; its handler runs once.
//   HP-2    only children that have not been reaped are signalled (a process id is never used twice).
//   HP-3    destruction kills (SIGKILL) and reaps what still runs; no handler is called then.
//   HP-4    no descriptor of the parent reaches a child unless the spec names it.
#pragma once

#include <memory>

#include "runtime/seams/process.hpp"

namespace troupe {

class event_loop;

class host_process final : public process_host {
public:
  explicit host_process(event_loop& loop); // the loop outlives it
  ~host_process() override;
  host_process(const host_process&) = delete;
  host_process& operator=(const host_process&) = delete;

  expected<child_process> start(const process_spec& spec, process_exit_handler on_exit) override;
  expected<void> signal(std::int64_t pid, int signal_number) override;
  [[nodiscard]] std::size_t running() const;

private:
  struct state;
  std::shared_ptr<state> state_;
};

} // namespace troupe
