// Loopback: the transport seam inside one process. Two ends, one executor, no wire.
//
// Flow:     send -> a buffer of the hub -> a task on the executor -> on_message at the other end.
// Owns:     the buffers, reused; which ends there are.
// Runs on:  the executor given, which is the event loop of every end of the hub.
// Fails:    an end that is destroyed is a lost path to the others; an end that closes said goodbye.
// Invariants: TR-1 .. TR-5 of the seam, and
//   LT-1    bytes under way from one end to another never exceed `in_flight_bytes_max`.
//   LT-2    a pair of ends that has parted with a goodbye never meets again.
#pragma once

#include <cstddef>
#include <memory>

#include "runtime/seams/executor.hpp"
#include "runtime/seams/transport.hpp"

namespace troupe {

struct loopback_settings {
  std::size_t in_flight_bytes_max{4U << 20}; // per pair and direction; above: errc::no_credit
  std::size_t bulk_piece_bytes{1U << 20};    // copied in one task, so that messages get their turn
};

class loopback_hub {
public:
  explicit loopback_hub(executor& loop, loopback_settings settings = {});
  // A new end; each incarnation once. It may outlive the hub object, not the executor.
  [[nodiscard]] std::unique_ptr<transport> open(incarnation_id self);

private:
  struct state;
  class end;
  std::shared_ptr<state> state_;
};

} // namespace troupe
