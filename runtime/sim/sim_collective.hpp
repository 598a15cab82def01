// Simulated collective: all communicators of all simulated processes, summed canonically, finished after a
// delay drawn from the seed. What is begun as a part is copied there and then, and summed as it was: whoever
// writes to it afterwards, or begins other parts than the other ranks (CO-5), is found out.
//
// A dead member never arrives: only `abort` ends the wait, as on real memory. An abort that meets a sum which
// is complete but not yet taken: in memory that all share, every rank still gets it. With `aborts_split`, as
// between hosts, the seam allows each rank either answer (CO-2), and the seed decides.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>

#include "runtime/seams/collective.hpp"
#include "runtime/sim/sim_world.hpp"

namespace troupe {

class sim_meeting;

// For checkers: what was summed, and who took it.
class sim_collective_observer {
public:
  virtual ~sim_collective_observer() = default;
  // A process has entered an all-reduce, whatever becomes of it.
  virtual void on_arrival(std::int64_t pid) = 0;
  // All ranks have arrived; `pids` by rank. `sum` numbers the sums of the world from 1.
  virtual void on_sum(std::uint64_t sum, const collective_shape& shape, std::span<const std::int64_t> pids,
                      std::span<const float> values) = 0;
  // The process's `done` was called with that sum, and has returned.
  virtual void on_taken(std::uint64_t sum, std::int64_t pid) = 0;
};

// The place where collectives of all simulated processes meet.
class sim_collective_hub {
public:
  explicit sim_collective_hub(sim_world& world)
      : world_{world} {}
  [[nodiscard]] std::unique_ptr<collective> make_collective(sim_process& owner);
  void set_aborts_split(bool split) { aborts_split_ = split; }
  // The process that begins the `count`-th part from now on is killed inside the call.
  void kill_at_part(std::uint64_t count) { fatal_part_ = count; }
  // The `count`-th sum from now on fails at all its ranks, and nobody has asked for that.
  void break_sum(std::uint64_t count) { broken_sum_ = count; }
  void set_observer(sim_collective_observer* observer) { observer_ = observer; } // not owned; may be null

private:
  friend class sim_collective;
  friend class sim_groups;
  friend class sim_meeting;
  sim_world& world_;
  sim_collective_observer* observer_{nullptr};
  std::map<std::string, std::shared_ptr<sim_meeting>> meetings_;
  bool aborts_split_{false};
  std::uint64_t fatal_part_{0}; // 0: none
  std::uint64_t broken_sum_{0};
  std::uint64_t next_{1};
  std::uint64_t sums_{0};
};

} // namespace troupe
