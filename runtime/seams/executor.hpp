// Executor seam: runs tasks one at a time, in the order posted.
//
// Real: the event loop, the device's owner thread, the reader thread, the storage thread. Simulated: all of
// them are queues of one seeded driver. `post` never blocks and never runs the task inline.
#pragma once

#include "runtime/base/task.hpp"

namespace troupe {

class executor {
public:
  virtual ~executor() = default;
  virtual void post(task work) = 0; // any thread
  // For fault injection, inside a task of this executor: what the task has taken so far takes `factor` times
  // as long; nothing else runs here meanwhile. An executor that cannot be slowed down ignores it.
  virtual void stretch(double /*factor*/) {}
};

} // namespace troupe
