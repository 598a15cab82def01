// Edges inside one process: what its actors tell each other. Values; bulk travels as leases, never copied.
//
//   worker -> prefetcher     assign_prefetch, stop_prefetch: one assignment at a time, credit: the stream
//   worker -> checkpointer   write_checkpoint: at most `snapshot_slots` at a time; the lease is the credit
//   process -> its actors    control_received, bulk_received, path_lost, tick
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "runtime/base/error.hpp"
#include "runtime/checkpoint/snapshot_slots.hpp"
#include "runtime/data/prefetch_pump.hpp"
#include "runtime/wire/control.hpp"

namespace troupe {

struct assign_prefetch {
  static constexpr std::string_view wire_name = "troupe.assign_prefetch";
  batch_assignment what;
};
struct stop_prefetch {
  static constexpr std::string_view wire_name = "troupe.stop_prefetch";
};
// From the reader's thread to the prefetcher itself.
struct prefetch_failed {
  static constexpr std::string_view wire_name = "troupe.prefetch_failed";
  prefetch_failure what;
};
struct write_checkpoint {
  static constexpr std::string_view wire_name = "troupe.write_checkpoint";
  std::shared_ptr<snapshot> what; // taken by the checkpointer
  duration stall{0};
};
struct control_received {
  static constexpr std::string_view wire_name = "troupe.control_received";
  incarnation_id from;
  std::shared_ptr<const wire::control> message;
};
struct bulk_received {
  static constexpr std::string_view wire_name = "troupe.bulk_received";
  incarnation_id from;
  std::uint64_t transfer{0};
  expected<void> result;
};
struct path_lost {
  static constexpr std::string_view wire_name = "troupe.path_lost";
  incarnation_id peer;
  error cause;
};
struct path_interrupted {
  static constexpr std::string_view wire_name = "troupe.path_interrupted";
  incarnation_id peer;
  error cause;
};
struct tick {
  static constexpr std::string_view wire_name = "troupe.tick";
};
struct prefetcher_restarted {
  static constexpr std::string_view wire_name = "troupe.prefetcher_restarted";
  std::string cause;
};
// To a worker's fresh life: the newest generation its process was asked to take part in.
struct worker_restarted {
  static constexpr std::string_view wire_name = "troupe.worker_restarted";
  generation_id generation;
};
// Ends an actor with this error: its supervisor decides what follows.
struct fail_now {
  static constexpr std::string_view wire_name = "troupe.fail_now";
  error cause;
};

} // namespace troupe
