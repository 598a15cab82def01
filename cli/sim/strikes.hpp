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
  bool newest_is_last{true};    // the last step's checkpoint is there in the end
  bool keeps_survivors{true};   // nobody but who was struck is replaced
  int exit_code{0};             // that the last job ends with
  bool generations_anew{false}; // a successor knows nothing of its predecessor
};
// Plays `converse` (conversation.hpp) instead of a job, whatever the number of workers.
inline constexpr std::string_view conversation_scenario = "conversation";
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
  enum class action : std::uint8_t {
    kill,
    kill_all,
    pause,
    pause_director,
    resume,
    kill_director,
    damage_journal,
    damage_version,
    fill_disk,
    interrupt,
  };
  struct planned {
    std::uint64_t at{0}; // event
    action what{action::kill};
  };
  [[nodiscard]] std::uint64_t draw(std::uint64_t below);
  void plan(action what, std::uint64_t at) { planned_.push_back({at, what}); }
  void plan_mixed(workload& what);
  void plan_often(const std::string& fault, workload& what);
  void plan_busy(std::string_view scenario, workload& what);
  [[nodiscard]] bool act(cluster& in, action what);
  [[nodiscard]] std::optional<std::int64_t> any_worker(const cluster& in);
  void tell(cluster& in, const std::string& what);
  [[nodiscard]] bool pause_director(cluster& in);
  [[nodiscard]] bool damage_version(cluster& in);
  [[nodiscard]] bool damage_journal(cluster& in);
  void strike_writer(cluster& in, sim_process& who);
  void strike_replacement(cluster& in);

  counter_rng random_;
  std::uint64_t draws_{0};
  std::uint64_t events_;
  std::vector<planned> planned_;
  std::vector<std::string> told_;
  std::int64_t paused_{0};
  std::optional<role> writer_;         // to be struck in the middle of its changes to the disk
  std::uint64_t changes_left_{0};      // before it is
  std::optional<duration> kill_after_; // the start
  bool replacement_torn_{false};       // all workers are to die while a version is replaced
  std::uint64_t changes_fail_{0};      // of a version that is replaced
  std::uint64_t room_left_{0};         // on a disk that fills up
};

} // namespace troupe::sim
