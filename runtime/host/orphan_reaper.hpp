// Orphan reaper: makes this process the one that inherits what its children leave behind, and ends it.
//
// For a `main` that promises to leave no process behind: a copy of a program that is ended may have started
// others. Linux hands those to the nearest ancestor that asked for them (PR_SET_CHILD_SUBREAPER).
// Runs on:  one thread; reads /proc. Not beside a `host_process` that still has children: those are its own.
// Invariants:
//   OR-1    only direct children of this process are signalled, and reaped before their id can be used again.
#pragma once

#include <cstddef>

namespace troupe {

class orphan_reaper {
public:
  orphan_reaper();  // from now on, what our descendants leave becomes our child
  ~orphan_reaper(); // and no longer
  orphan_reaper(const orphan_reaper&) = delete;
  orphan_reaper& operator=(const orphan_reaper&) = delete;

  // Reaps children that have ended, signals the others. Returns how many those are: call again until 0, for
  // what is killed may leave children of its own.
  [[nodiscard]] std::size_t sweep(int signal_number);
};

} // namespace troupe
