// Fault injector: strikes its own process, its own actor or its own seams, where the fault plan says so.
//
// Flow:     the step about to be computed -> [injector] -> a signal, an exit, an exception, a switch
// Owns:     the plan and what has struck already (from the director, plus its own strikes).
// Runs on:  `on_step` on the device's executor, `on_read` on the reader's; `update` on the loop between runs.
// Invariants:
//   FI-1    a strike is written to the black box before it happens: the director knows when, and which.
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

  // What it strikes with. All outlive it.
  struct means {
    const clock_seam& clock; // the true one
    own_process& self;
    black_box& box;
    fault_switches* switches; // null: nothing in the plan strikes a seam
    damage damage_checkpoint;
  };
  fault_injector(fault_plan plan, std::uint64_t seed, means with);

  // A new generation: this process's place, and what has struck in the whole job.
  void update(rank_id rank, std::uint32_t world, const std::string& fired, time_point job_started);
  // What has struck in the whole job by now.
  void hear(const std::string& fired);
  // Step `computing` (from 1) is about to be computed. May not return, or throw std::runtime_error.
  void on_step(step_id computing);
  // The same for the prefetcher, before it reads the batch of that step.
  void on_read(step_id computing);
  [[nodiscard]] bool empty() const { return plan_.empty(); }
  // When this process was last struck, on the clock seam's time; 0: never.
  [[nodiscard]] std::int64_t last_strike_ns() const { return with_.box.fault_ns.load(); }

private:
  void strike(std::size_t index);
  void mark(std::size_t index);
  [[nodiscard]] std::vector<std::size_t> due_now(fault_role role, step_id computing, step_id& previous);

  const fault_plan plan_;
  const std::uint64_t seed_;
  means with_;
  std::mutex mutex_; // the reader and the device ask at the same time
  fired_faults fired_;
  rank_id rank_;
  std::uint32_t world_{1};
  time_point job_started_;
  step_id previous_step_, previous_read_, previous_checkpoint_;
};

} // namespace troupe
