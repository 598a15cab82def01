// Own-process seam: what a process knows of itself, and how it strikes itself. Striking is for fault
// injection, and the last resort of a device whose abort does not return; nothing else ends a process.
#pragma once

#include <cstdint>

#include "runtime/base/time.hpp"

namespace troupe {

// Since the process started.
struct process_counters {
  duration cpu{0}; // of all threads
  std::uint64_t page_faults{0};
  bool counts_allocations{false};    // the two below mean something: in builds for measuring only
  std::uint64_t loop_allocations{0}; // on the main thread: the event loop
  std::uint64_t data_allocations{0}; // on all others: device, reader, storage
};

class own_process {
public:
  virtual ~own_process() = default;
  // Real: never returns for a deadly signal. Simulated: takes effect before the next task.
  virtual void raise_signal(int signal_number) = 0;
  virtual void exit_now(int code) = 0;                                   // without any clean-up, as `_exit`
  [[nodiscard]] virtual process_counters counters() const { return {}; } // any thread
};

} // namespace troupe
