// Simulation plan: what `troupe sim` is asked to run, from its options' texts.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/sim/sim_command.hpp"
#include "cli/sim/simulator.hpp"

namespace troupe::sim {

struct host_range {
  std::uint32_t least{1};
  std::uint32_t most{1};
  [[nodiscard]] std::string text() const;
};

struct sim_plan {
  std::uint64_t first{1};
  std::uint64_t last{1};
  std::vector<host_range> hosts;      // a row of runs each
  std::uint32_t workers{0};           // 0: the seed picks, a few more than hosts
  std::uint32_t joiners{1};           // workers of each further host
  std::vector<std::string> faults;    // a row of runs each
  std::vector<std::string> workloads; // the seed picks one of these
  std::uint64_t steps{0};             // 0: the workload's own
  fault_plan job_faults;

  // The seed's choice in a row.
  [[nodiscard]] layout layout_of(std::uint64_t seed, host_range row) const;
  [[nodiscard]] const std::string& workload_of(std::uint64_t seed, layout where) const;
};

// errc::bad_argument: one line that names the option, the value and what is accepted.
[[nodiscard]] expected<sim_plan> plan_of(const sim_options& options);

} // namespace troupe::sim
