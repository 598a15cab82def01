// Fault injector: strikes its own process, its own actor or its own seams, where the fault plan says so.
//
// Flow:     the step about to be computed -> [injector] -> a signal, an exit, an exception, a switch
// Owns:     the plan and what has struck already (from the director, plus its own strikes).
// Runs on:  `ready` and `on_step` on the device's executor, `on_read` on the reader's; the rest on the loop.
// Invariants:
//   FI-1    a strike is written to the black box before it happens: the director knows when, and which. A
//           director that cannot read it, on another host, is told first; the strike waits until it knows.
//   FI-2    a fault that has struck as often as planned does not strike again, in this process or its
//           replacements; nor elsewhere, once the director's next heartbeat has told of it.
//   FI-3    every kind of the plan that aims at a worker, a prefetcher or a checkpoint does strike.
#pragma once

#include <functional>
#include <mutex>
#include <string>

#include "runtime/faults/fault_switches.hpp"
#include "runtime/policy/fault_plan.hpp"
#include "runtime/seams/clock.hpp"
#include "runtime/seams/own_process.hpp"
#include "runtime/seams/process.hpp"

namespace troupe {

class fault_injector {
public:
  // Damages a checkpoint ("newest", or a step); blocks on storage, on the device's executor.
  using damage = std::function<void(const std::string& which)>;

  // Tells the director that a fault strikes; any thread.
  using announce = std::function<void(std::size_t fault)>;

  // What it strikes with. All outlive it.
  struct means {
    const clock_seam& clock; // the true one
    own_process& self;
    black_box& box;
    fault_switches* switches; // null: nothing in the plan strikes a seam
    damage damage_checkpoint;
    announce tell_director; // none: the director reads the black box
  };
  fault_injector(fault_plan plan, std::uint64_t seed, means with);

  // A new generation: this process's place, and what has struck in the whole job.
  void update(rank_id rank, std::uint32_t world, const std::string& fired, time_point job_started);
  // What has struck in the whole job by now.
  void hear(const std::string& fired);
  // May step `computing` begin? False while a strike that is due in it is not known to the director yet; ask
  // again after `hear`. Asked before `on_step`, on the device's executor.
  [[nodiscard]] bool ready(step_id computing);
  // Step `computing` (from 1) is about to be computed. May not return, or throw std::runtime_error.
  void on_step(step_id computing);
  // The same for the prefetcher, before it reads the batch of that step.
  void on_read(step_id computing);
  [[nodiscard]] bool empty() const { return plan_.empty(); }
  // When this process was last struck, on the clock seam's time; 0: never.
  [[nodiscard]] std::int64_t last_strike_ns() const { return with_.box.fault_ns.load(); }

private:
  struct announced {
    std::size_t fault;
    rank_id rank;
    std::uint32_t strikes; // on that rank, once the director knows of it
  };
  [[nodiscard]] std::vector<std::size_t> due_in(step_id computing);
  void strike(std::size_t index);
  void mark(std::size_t index);
  [[nodiscard]] std::vector<std::size_t> due_now(fault_role role, step_id computing, step_id& previous);

  const fault_plan plan_;
  const std::uint64_t seed_;
  means with_;
  std::mutex mutex_; // the reader and the device ask at the same time
  fired_faults fired_;
  std::vector<announced> announced_; // and not struck yet
  rank_id rank_;
  std::uint32_t world_{1};
  time_point job_started_;
  step_id previous_step_, previous_read_, previous_checkpoint_;
};

} // namespace troupe
