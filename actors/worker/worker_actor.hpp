// Worker's actor: the worker core behind a mailbox, and its ports onto the process.
//
// Flow:     director and peer messages, device answers -> [worker core] -> ports
// Runs on:  the event loop.
// Fails:    a device failure (`fail_now`) ends the actor with that error; its supervisor starts a fresh one.
#pragma once

#include <functional>
#include <memory>

#include <caf/fwd.hpp>

#include "actors/remote/post_office.hpp"
#include "actors/worker/worker_core.hpp"
#include "runtime/seams/environment.hpp"

namespace troupe {

// The neighbours inside the process; updated when a supervisor restarts one. Event loop only.
struct worker_neighbours {
  worker_neighbours();
  ~worker_neighbours();
  void forget(); // drops the handles
  std::unique_ptr<caf::actor> prefetcher, checkpointer, worker;
  worker_core* core{nullptr}; // of the worker's current life
  bool failure_told{false};   // the director knows why the worker's former life ended
};

struct worker_parts {
  environment& outside;
  post_office& office;
  trainer& compute;
  incarnation_id director;
  worker_settings settings;
  state_layout layout;
  std::string flight_directory; // empty: no flight dumps
  std::shared_ptr<worker_neighbours> neighbours;
  std::function<void(const std::string& cause)> leave; // ends the process in order
};

[[nodiscard]] caf::actor spawn_worker(caf::actor_system& system, const worker_parts& parts);

} // namespace troupe
