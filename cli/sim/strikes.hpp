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

#include "cli/sim/mishaps.hpp"

namespace troupe::sim {

// What may be asked of a run in the end.
struct expectation {
  // Batches that may be computed again while at least one replica lives; none: no bound (all may die).
  std::optional<std::uint64_t> recomputed_max{};
  std::optional<std::size_t> failures_max{}; // that the job tells of; none: no bound
  bool newest_is_last{true};                 // the last step's checkpoint is there in the end
  bool keeps_survivors{true};                // nobody but who was struck is replaced
  // But who cannot be reached for as long as a path may take to open may be: the length of all cuts.
  bool replaces_cut_off{false};
  int exit_code{0};             // that the last job ends with
  bool generations_anew{false}; // a successor knows nothing of its predecessor
};

struct fault_scenario {
  std::string_view name;
  std::string_view text;
  void (*plan)(strikes&){nullptr};
  expectation expected{};
};
// Plays `converse` (conversation.hpp) instead of a job, whatever the layout.
inline constexpr std::string_view conversation_scenario = "conversation";
[[nodiscard]] std::span<const fault_scenario> fault_scenarios();
[[nodiscard]] const fault_scenario* find_scenario(std::string_view name);

struct strike_report {
  duration at{0}; // virtual
  std::uint64_t event{0};
  std::string what;
};

class strikes {
public:
  // `events`: of a run without faults. `more`: mishaps of the user's own, drawn like the others.
  strikes(const fault_scenario& scenario, std::uint64_t seed, std::uint64_t events, const workload& what,
          layout where, std::span<const named_mishap> more = {});

  void operator()(cluster& in);                                                  // between two tasks
  void arm(cluster& in);                                                         // once, before the run
  [[nodiscard]] const std::vector<strike_report>& told() const { return told_; } // what struck, in order
  [[nodiscard]] const expectation& expected() const { return expected_; }
  [[nodiscard]] const fault_plan& job_faults() const { return job_faults_; }

  // --- for scenarios ---
  void plan(mishap what, std::uint64_t at_event) { planned_.push_back({at_event, std::move(what)}); }
  void plan_job_fault(const std::string& spec);              // of the job's own plan, as --fault takes it
  void die_in_change(role whose, std::uint64_t changes_max); // in one of its next changes to the disk
  [[nodiscard]] std::uint64_t any_time() { return draw(events_); }
  [[nodiscard]] std::string any_step() { return std::to_string(1 + draw(steps_)); }
  [[nodiscard]] std::uint64_t steps() const { return steps_; }
  [[nodiscard]] std::uint64_t events() const { return events_; }
  [[nodiscard]] layout where() const { return where_; }
  [[nodiscard]] expectation& expect() { return expected_; }
  [[nodiscard]] std::span<const named_mishap> more() const { return more_; }

  // --- for mishaps ---
  [[nodiscard]] std::uint64_t draw(std::uint64_t below); // 0 for 0
  [[nodiscard]] duration draw_between(duration low, duration high);
  void plan_after(std::uint64_t events, mishap what); // from the strike that runs now
  void note_cut(cluster& in, duration length);        // of links
  void over() { over_ = true; }                       // nothing that is still planned strikes

private:
  struct planned {
    std::uint64_t at{0}; // event
    mishap what;
  };
  void tell(cluster& in, std::string what);
  void strike_writer(cluster& in, sim_process& who);

  counter_rng random_;
  std::uint64_t draws_{0};
  std::uint64_t events_;
  std::uint64_t steps_;
  layout where_;
  std::span<const named_mishap> more_;
  expectation expected_;
  fault_plan job_faults_;
  std::vector<planned> planned_;
  std::uint64_t now_{0};
  bool over_{false};
  duration cuts_{0};
  std::vector<strike_report> told_;
  std::optional<role> writer_;    // to be struck in the middle of its changes to the disk
  std::uint64_t changes_left_{0}; // before it is
};

} // namespace troupe::sim
