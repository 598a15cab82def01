// Worker process: everything that runs in a worker's process, composed from a graph and the seams.
//
// Flow:     rendezvous answer, graph, environment -> [worker process] -> the director's job
// Owns:     the actor system, the post office, the trainer, the local supervisor and what it supervises.
// Runs on:  the event loop; `make` allocates and touches the state's memory (before the loop gets busy).
// Fails:    an actor's failure is healed here (the director is told); when the local budget is spent, or the
//           director is gone for longer than orphan_grace, the process ends.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "actors/graph/training_graph.hpp"
#include "runtime/data/staging.hpp"
#include "runtime/seams/environment.hpp"
#include "runtime/seams/rendezvous.hpp"

namespace troupe {

struct worker_outside {
  environment& env;
  staging& stage;
  std::int64_t pid{0};
  std::uint32_t slot{0};
  std::string machine{};           // as in join_offer
  bool joined_from_outside{false}; // no child of the director, which cannot read its black box
  // Last call. Do not destroy the process inside it.
  std::function<void(int exit_code, const std::string& cause)> over;
};

class worker_process {
public:
  [[nodiscard]] static expected<std::unique_ptr<worker_process>>
  make(const worker_outside& outside, const training_graph& graph, const join_answer& joined);
  ~worker_process();
  void start(); // connects to the director and reports ready
  // Batches and snapshot slots that somebody holds: 0 once everything rests (no lease is lost).
  [[nodiscard]] std::size_t leases_out() const;

private:
  struct state;
  explicit worker_process(std::unique_ptr<state> made);
  std::unique_ptr<state> state_;
};

} // namespace troupe
