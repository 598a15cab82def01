// Simulated cluster: one director and its workers, as programs of simulated processes on several hosts.
//
// Flow:     seed, workload, layout -> [cluster] -> events, what people read, summaries, checkpoints on a disk
// Owns:     the machines (world, network, disk), and what outlives every process. The processes are those of
//           a real job: director_process and worker_process, unchanged.
// Runs on:  the caller's thread.
// Host 0 has the director and the workers that it starts; every further host has workers (one, if nothing is
// said) that join from outside, and are started again by their host when they fail. All hosts see one disk. A
// further director may be started when the one before has died: like a real one it waits until no process of
// the earlier job holds the checkpoint directory any more. A job with `--collective ring` sums over the
// simulated network; others in memory that all hosts see.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "cli/sim/history.hpp"
#include "cli/sim/network_sums.hpp"
#include "cli/sim/workload.hpp"
#include "runtime/data/staging.hpp"
#include "runtime/sim/sim_environment.hpp"
#include "runtime/telemetry/summary.hpp"
#include "runtime/telemetry/text_sink.hpp"

namespace troupe::sim {

enum class role : std::uint8_t { director, worker };

// How many, and where. `workers` is at least 1, and enough for the joiners of all hosts but the first.
struct layout {
  std::uint32_t hosts{1};
  std::uint32_t workers{3};
  std::uint32_t joiners{1}; // of each further host
  [[nodiscard]] constexpr std::uint64_t external() const { return std::uint64_t{hosts - 1} * joiners; }
  auto operator<=>(const layout&) const = default;
};

// How one director's life ended.
struct job_end {
  std::int64_t pid{0};
  bool over{false}; // it said so itself; else it was struck
  bool interrupted{false};
  int exit_code{0};
  std::optional<error> cause;
  job_summary summary;
};

class cluster {
public:
  cluster(std::uint64_t seed, const workload& what, layout where,
          std::shared_ptr<const sample_contents> samples);
  ~cluster();
  cluster(const cluster&) = delete;
  cluster& operator=(const cluster&) = delete;

  void start_director(duration delay = duration{0});
  // As SIGTERM: the job ends in order, then another director starts. False: no job is there to be told.
  [[nodiscard]] bool interrupt();
  // The host goes dark: its processes die, unsynced changes are lost or not (`keep`), nobody reaches it until
  // it is back after `away`; then what it ran is started again.
  void lose_power(sim_host_id host, duration away, const std::function<bool(std::size_t)>& keep);
  // The newest director, which has not begun, is not told where its predecessor got to.
  void forget_generations() { generations_forgotten_ = true; }
  // Called before each change that a process makes to the disk; may end the process.
  void before_change(std::function<void(sim_process&)> hook) { before_change_ = std::move(hook); }
  // Checks the versions that have got their names since the last look; happens before every change.
  void look_at_disk();
  // Asked between any two tasks; may strike.
  using between = std::function<void(cluster&)>;
  // Until the newest director's job is over and no process is left; false when a budget was spent first.
  [[nodiscard]] bool run(const between& strike);
  // From now on the job has at most this long (virtual).
  void end_within(duration limit) { deadline_ = machine_.world.now() + limit; }

  [[nodiscard]] sim_machine& machine() { return machine_; }
  [[nodiscard]] const workload& what() const { return what_; }
  [[nodiscard]] layout where() const { return where_; }
  [[nodiscard]] history& samples() { return history_; }
  [[nodiscard]] const history& samples() const { return history_; }
  [[nodiscard]] std::vector<std::int64_t> alive(role which) const;
  [[nodiscard]] const std::vector<job_end>& ends() const { return ends_; }
  // Of all directors, one after another; each begins with job_started.
  [[nodiscard]] const std::string& events() const { return events_.text(); }
  [[nodiscard]] const std::string& people() const { return people_.text(); }
  // World time at which each director began, by its place in `ends()`.
  [[nodiscard]] const std::vector<time_point>& begins() const { return begins_; }
  // That a failure may cost while a replica lives: the step in flight, and where an abort may split the ranks
  // also the one before.
  [[nodiscard]] std::uint64_t steps_lost_max() const { return steps_lost_max_; }
  // Leases that workers still held when their job was over.
  [[nodiscard]] std::size_t leases_lost() const { return leases_lost_; }
  // Versions that had their names before they were whole, or got lost, one line each.
  [[nodiscard]] const std::vector<std::string>& disk_findings() const { return disk_findings_; }

private:
  class process_seams;
  class director_program;
  class worker_program;
  friend class director_program;
  friend class worker_program;
  [[nodiscard]] bool over() const;
  void look_for_reported();
  using joiner = std::pair<sim_host_id, std::uint32_t>; // which one of its host
  void launch_joiner(joiner which, duration delay);
  void joiner_ended(joiner which, std::size_t life, const process_exit& how);

  workload what_;
  layout where_;
  std::uint64_t steps_lost_max_;
  history history_;
  network_sums sums_;
  memory_staging stage_;
  memory_text_sink events_, people_;
  std::vector<job_end> ends_;
  std::vector<time_point> begins_;
  std::map<std::int64_t, role> roles_;
  std::set<std::int64_t> members_;               // processes that have taken part in a job
  std::map<joiner, std::int64_t> joiners_;       // the newest processes of further hosts
  std::map<sim_host_id, time_point> dark_until_; // hosts without power
  director_program* director_{nullptr};          // the newest, while it lives
  std::size_t leases_lost_{0};
  bool generations_forgotten_{false};
  std::function<void(sim_process&)> before_change_;
  std::set<std::string> published_;     // as of the last look
  std::map<std::string, bool> retired_; // whether it was whole when it was put aside
  std::vector<std::string> disk_findings_;
  time_point deadline_;
  sim_machine machine_; // last: its processes use all of the above
};

} // namespace troupe::sim
