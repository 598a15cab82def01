// Faulty environment: the outside of a process, with every seam that an injected fault can strike replaced.
//
// Flow:     environment -> [faulty environment] -> a worker process, which cannot tell
// Owns:     the switches and the faulty seams. Composed only where the job's plan strikes a seam.
// The box, entropy, the log, processes and the event loop stay as they are.
#pragma once

#include "runtime/faults/fault_switches.hpp"
#include "runtime/faults/faulty_clock.hpp"
#include "runtime/faults/faulty_collective.hpp"
#include "runtime/faults/faulty_storage.hpp"
#include "runtime/faults/faulty_transport.hpp"
#include "runtime/faults/slow_executor.hpp"
#include "runtime/seams/environment.hpp"

namespace troupe {

class faulty_environment {
public:
  // `inner` outlives it, and every task posted through it.
  faulty_environment(environment& inner, incarnation_id director);

  [[nodiscard]] environment& env() { return env_; }
  [[nodiscard]] fault_switches& switches() { return switches_; }

private:
  fault_switches switches_;
  faulty_clock clock_;
  faulty_transport network_;
  faulty_collective collectives_;
  slow_executor reader_;
  slow_executor storage_thread_;
  faulty_storage files_;
  environment env_;
};

} // namespace troupe
