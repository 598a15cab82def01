// Scheduler module for CAF that runs actors on an executor: no threads of its own.
//
// Flow:     message to an idle actor -> ready queue -> [turn on the executor] -> actor
// Runs on:  the executor; `enqueue` from any thread. One turn runs at most `actors_per_turn` actors, each for
//           at most `messages_per_turn` messages, then posts the next turn: the loop's other work gets its
//           share.
// Invariants:
//   AS-1    actors run one at a time, in the order in which they became ready (round robin when several are).
//   AS-2    at most one turn is posted at a time.
//   AS-3    an exception that leaves an actor becomes its exit reason with code and text, unless the actor
//           installed a handler of its own.
//   AS-4    once closed, nothing runs any more: late wake-ups are released.
// Why:      docs/design/0006-one-loop-actor-scheduler.md
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <caf/execution_unit.hpp>
#include <caf/resumable.hpp>
#include <caf/scheduler/abstract_coordinator.hpp>

#include "actors/system/loop_clock.hpp"
#include "runtime/base/log.hpp"
#include "runtime/seams/executor.hpp"

namespace troupe {

struct loop_limits {
  std::size_t messages_per_turn{32}; // that one actor handles before the next one runs
  std::size_t actors_per_turn{16};   // that run before the loop's other work does
};

struct loop_counters {
  std::uint64_t turns{0};
  std::uint64_t resumed{0};    // actors run
  std::uint64_t exceptions{0}; // that left an actor
};

class loop_coordinator final : public caf::scheduler::abstract_coordinator {
public:
  loop_coordinator(caf::actor_system& system, executor& loop, clock_seam& clock, log_sink& log,
                   loop_limits bounds);
  ~loop_coordinator() override;

  // CAF's side.
  void init(caf::actor_system_config& config) override;
  void start() override;
  void stop() override;
  void enqueue(caf::resumable* job) override;
  [[nodiscard]] bool detaches_utility_actors() const override { return false; }
  caf::actor_clock& clock() noexcept override { return clock_; }

  // Ours. Event loop only.
  // Runs ready actors at once, `runs_max` at most, until nothing is ready. False: work may be left.
  bool drain(std::size_t runs_max);
  void kill_all(); // every actor alive, in the order of their ids, and every one that starts later
  void close();    // AS-4
  [[nodiscard]] std::size_t alive() const;
  [[nodiscard]] std::string names_alive(std::size_t count_max) const;
  [[nodiscard]] bool running() const { return running_; }
  [[nodiscard]] const loop_counters& counters() const { return counters_; }

private:
  class unit;
  struct gate;   // outlives the coordinator in posted turns
  struct roster; // outlives it in actors that others still hold

  void turn();
  bool refill(); // moves what became ready into the turn; false: nothing
  void run_one(caf::resumable* job);
  static void kill(caf::abstract_actor& actor);
  void adopt(caf::scheduled_actor& actor); // before its first run
  bool keep_posted();
  void post_turn();
  void release_ready();

  executor& loop_;
  log_sink& log_;
  loop_limits bounds_;
  loop_clock clock_;
  std::unique_ptr<unit> unit_;
  std::shared_ptr<gate> gate_;
  loop_counters counters_;

  std::mutex mutex_; // guards ready_, posted_, closed_
  std::vector<caf::resumable*> ready_;
  bool posted_{false};
  bool closed_{false};

  std::vector<caf::resumable*> turn_; // being run, from next_
  std::size_t next_{0};
  bool running_{false};
  bool killing_{false};
  std::shared_ptr<roster> alive_;
};

} // namespace troupe
