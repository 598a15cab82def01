// Prefetcher's actor: control of the prefetch pump, and the place where its failures become an actor's.
//
// Flow:     worker -> assign_prefetch, stop_prefetch -> [prefetcher] -> pump -> batch stream
// Owns:     the pump of its life; a restarted prefetcher has a fresh one on the same stream.
// Runs on:  the event loop; reading happens on the reader executor.
// Fails:    what the pump reports ends the actor with that error; its supervisor starts a new one.
#pragma once

#include <memory>

#include <caf/fwd.hpp>

#include "actors/faults/fault_injector.hpp"
#include "runtime/data/batch_stream.hpp"
#include "runtime/data/dataset.hpp"
#include "runtime/seams/executor.hpp"

namespace troupe {

struct prefetcher_parts {
  executor& reader;
  std::shared_ptr<const dataset> data;
  std::shared_ptr<batch_stream> stream;
  fault_injector* faults{nullptr}; // outlives the actor; may be null
  std::uint32_t accumulate{1};     // global batches of one step, to tell faults the step
};

[[nodiscard]] caf::actor spawn_prefetcher(caf::actor_system& system, const prefetcher_parts& parts);

} // namespace troupe
