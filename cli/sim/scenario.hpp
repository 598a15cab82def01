// Scenario: one simulated run under one fault scenario, from start to verdict.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "cli/sim/checkers.hpp"

namespace troupe::sim {

struct run_request {
  std::uint64_t seed{1};
  std::uint32_t workers{3};
  std::string faults{"kill"}; // a fault scenario's name
};

struct run_result {
  run_request request;
  std::vector<std::string> findings; // empty: the run is right
  std::vector<std::string> struck;   // what struck, in order
  std::string trace_digest;
  std::uint64_t events{0};
  duration virtual_time{0};
  std::uint64_t recomputed{0};
  std::string event_lines; // as --events writes them
  std::vector<std::string> log;

  [[nodiscard]] bool right() const { return findings.empty(); }
  // What a person needs to see of a run that went wrong: how to replay it, what struck, what happened.
  [[nodiscard]] std::string report() const;
};

[[nodiscard]] std::string replay_command(const run_request& what);

class simulator {
public:
  explicit simulator(workload base = {})
      : base_{std::move(base)} {}
  // errc::bad_argument: no such scenario.
  [[nodiscard]] expected<run_result> run(const run_request& what);
  // What a run without faults ends with; made once a number of workers and a distance of checkpoints.
  [[nodiscard]] const reference& known(std::uint32_t workers) {
    return known(workers, base_.checkpoint_every);
  }

private:
  [[nodiscard]] const reference& known(std::uint32_t workers, std::uint64_t checkpoint_every);

  workload base_;
  std::map<std::pair<std::uint32_t, std::uint64_t>, reference> known_;
};

} // namespace troupe::sim
