// Environment: everything outside, as one process sees it. Composed by a `main`, or by the simulator.
#pragma once

#include "runtime/base/log.hpp"
#include "runtime/seams/clock.hpp"
#include "runtime/seams/collective.hpp"
#include "runtime/seams/device.hpp"
#include "runtime/seams/entropy.hpp"
#include "runtime/seams/executor.hpp"
#include "runtime/seams/own_process.hpp"
#include "runtime/seams/process.hpp"
#include "runtime/seams/rendezvous.hpp"
#include "runtime/seams/storage.hpp"
#include "runtime/seams/transport.hpp"

namespace troupe {

struct environment {
  executor& loop; // the event loop: actors, transport, timers
  clock_seam& clock;
  entropy& random;
  transport& network;
  collective& collectives;
  device& compute;
  executor& reader;         // prefetching
  executor& storage_thread; // blocking file calls
  storage& files;
  process_host& processes;
  black_box& box;    // this process's own
  own_process& self; // for faults it injects into itself
  log_sink& log;
};

// The same outside, with another network and another collective.
[[nodiscard]] inline environment environment_with(const environment& inner, transport& network,
                                                  collective& collectives) {
  return {.loop = inner.loop,
          .clock = inner.clock,
          .random = inner.random,
          .network = network,
          .collectives = collectives,
          .compute = inner.compute,
          .reader = inner.reader,
          .storage_thread = inner.storage_thread,
          .files = inner.files,
          .processes = inner.processes,
          .box = inner.box,
          .self = inner.self,
          .log = inner.log};
}

} // namespace troupe
