// Strikes: the faults of one simulated run, drawn from its seed: what, whom, between which two tasks.
//
// In:       the name of a fault scenario, the seed, how many events a run without faults takes.
// Out:      a function for `cluster::run`, faults for the job's own plan, and the words for both.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/sim/cluster.hpp"

namespace troupe::sim {

struct fault_scenario {
  std::string_view name;
  std::string_view text;
  std::uint32_t workers_min{1};
  // Steps that may be computed again while at least one replica lives; none: no bound (all replicas may die).
  std::optional<std::uint64_t> recomputed_max{};
  std::optional<std::size_t> failures_max{}; // that the job tells of; none: no bound
  bool newest_is_last{true};                 // the last step's checkpoint is there in the end
  bool keeps_survivors{true};                // nobody but who was struck is replaced
  int exit_code{0};                          // that the last job ends with
};
[[nodiscard]] std::span<const fault_scenario> fault_scenarios();
[[nodiscard]] const fault_scenario* find_scenario(std::string_view name);

class strikes {
public:
  // `events`: of a run without faults. The workload may get faults of its own.
  strikes(std::string_view scenario, std::uint64_t seed, std::uint64_t events, workload& what);

  void operator()(cluster& in);                                                // between two tasks
  void arm(cluster& in);                                                       // once, before the run
  [[nodiscard]] const std::vector<std::string>& told() const { return told_; } // what struck, in order

private:
  enum class action : std::uint8_t { kill, kill_all, pause, resume, kill_director, fill_disk, interrupt };
  struct planned {
    std::uint64_t at{0}; // event
    action what{action::kill};
  };
  [[nodiscard]] std::uint64_t draw(std::uint64_t below);
  void plan(action what, std::uint64_t at) { planned_.push_back({at, what}); }
  void plan_mixed(workload& what);
  [[nodiscard]] fault seam_fault(std::string_view kind, const workload& what);
  [[nodiscard]] std::string for_a_while();
  [[nodiscard]] bool act(cluster& in, action what);
  [[nodiscard]] std::optional<std::int64_t> any_worker(const cluster& in);
  void tell(cluster& in, const std::string& what);
  void strike_writer(cluster& in, sim_process& who);

  counter_rng random_;
  std::uint64_t draws_{0};
  std::uint64_t events_;
  std::vector<planned> planned_;
  std::vector<std::string> told_;
  std::int64_t paused_{0};
  std::optional<role> writer_;    // to be struck in the middle of its changes to the disk
  std::uint64_t changes_left_{0}; // before it is
  std::uint64_t room_left_{0};    // on a disk that fills up
};

} // namespace troupe::sim
