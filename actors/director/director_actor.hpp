// Director's actor: the director core behind a mailbox, and its ports onto the seams.
//
// Flow:     process exits, joins, worker messages, ticks -> mailbox -> [director core] -> ports
// Runs on:  the event loop; file work is posted to the storage executor.
// Fails:    an exception here is a bug: the actor ends, and with it the job (exit code 70).
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include <caf/actor.hpp>
#include <caf/fwd.hpp>

#include "actors/director/director_core.hpp"
#include "actors/director/resume_search.hpp"
#include "actors/remote/post_office.hpp"
#include "runtime/seams/environment.hpp"

namespace troupe {

struct director_parts {
  environment& outside;
  post_office& office;
  director_settings settings;
  resume_search resume; // `first` is true
  job_id job;
  collective_shape sums;                                 // but for generation, world and members
  std::string flight_directory;                          // empty: no flight dumps
  rendezvous_server& door;                               // started before the director is
  process_spec worker;                                   // each worker's spec, without slot and endpoint
  std::function<std::string(incarnation_id)> lanes;      // of an open path; empty: nobody knows
  std::shared_ptr<caf::actor> reporter;                  // of the reporter's current life
  std::function<void(const std::optional<error>&)> over; // after the last record was told
};

// Names of environment variables that a director gives its workers.
inline constexpr const char* slot_variable = "TROUPE_SLOT";
inline constexpr const char* endpoint_variable = "TROUPE_RENDEZVOUS";

[[nodiscard]] caf::actor spawn_director(caf::actor_system& system, const director_parts& parts,
                                        std::shared_ptr<director_core*> core);

} // namespace troupe
