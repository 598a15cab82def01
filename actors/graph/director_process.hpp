// Director process: everything that runs in the director's process, composed from a graph and the seams.
//
// Flow:     graph, settings, environment -> [director process] -> workers, events, summary
// Owns:     the actor system, the post office, the director and the reporter, the decoded datasets.
// Runs on:  the event loop; `make` blocks (decoding, checks) and is for before the loop runs.
// Fails:    `make` says what is wrong before anything has started; afterwards the job ends with an exit code.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "actors/graph/training_graph.hpp"
#include "runtime/data/staging.hpp"
#include "runtime/seams/environment.hpp"
#include "runtime/seams/rendezvous.hpp"
#include "runtime/telemetry/progress_line.hpp"
#include "runtime/telemetry/summary.hpp"

namespace troupe {

struct director_outside {
  environment& env;
  rendezvous_server& door;
  staging& stage;
  text_sink& events;
  text_sink& people;
  progress_line::style style{progress_line::style::plain};
  process_spec worker; // how a worker is started; slot and endpoint are added
  job_id job;
  std::string machine{};                              // as in join_offer; empty: all are on one host
  std::uint32_t external_slots{0};                    // of the workers, how many join from outside
  std::function<std::string(incarnation_id)> lanes{}; // of an open path, for the events; empty: not told
  // Last call: nothing of the job is left. Do not destroy the process inside it.
  std::function<void(int exit_code, const std::optional<error>& cause)> over;
};

class director_process {
public:
  [[nodiscard]] static expected<std::unique_ptr<director_process>>
  make(const director_outside& outside, const training_graph& graph, job_settings settings);
  ~director_process();

  [[nodiscard]] expected<void> start(); // errc::bad_argument: the address is in use
  void stop(const error& cause);        // from outside: ends the job in order
  void keep_flights();                  // on the event loop: writes the last calls of every rank, if so set
  [[nodiscard]] job_summary summary() const;
  [[nodiscard]] const job_settings& settings() const;

private:
  struct state;
  explicit director_process(std::unique_ptr<state> made);
  std::unique_ptr<state> state_;
};

} // namespace troupe
