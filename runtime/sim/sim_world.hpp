// Simulated world: one seeded driver, virtual time, one thread; every executor of every process is a queue.
//
// Flow:     executors and timers of all processes -> [sim_world] -> one task at a time
// Owns:     virtual time, the queues, the simulated processes, the random stream of the seed.
// Runs on:  the caller's thread; nothing else.
// Fails:    a run that does not end within its budget of events is reported by `run_until`.
// Invariants:
//   SW-1    one seed is one run: every choice is drawn from the seed's stream, in one order.
//   SW-2    tasks of one executor run in the order posted; between executors the seed chooses.
//   SW-3    a killed process runs no further task, its timers never fire, and nothing it still does inside
//           the task that killed it is seen outside.
//   SW-4    time moves only when nothing is runnable.
// Why:      docs/rooms/sim.md
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "runtime/base/counter_rng.hpp"
#include "runtime/base/digest.hpp"
#include "runtime/sim/sim_process.hpp"

namespace troupe {

// Virtual time that one task of an executor takes: until then that executor runs no other.
struct sim_cost {
  duration min{0};
  duration max{0};
};

struct sim_world_settings {
  sim_cost device{std::chrono::microseconds{300}, std::chrono::milliseconds{2}};
  sim_cost reader{std::chrono::microseconds{20}, std::chrono::microseconds{400}};
  sim_cost storage{std::chrono::microseconds{200}, std::chrono::milliseconds{8}};
};

class sim_world {
public:
  explicit sim_world(std::uint64_t seed, sim_world_settings settings = {});
  ~sim_world();
  sim_world(const sim_world&) = delete;
  sim_world& operator=(const sim_world&) = delete;

  using program_factory = std::function<std::unique_ptr<sim_program>(sim_process&)>;
  // Starts a process; its program is made as the first task of its loop, after `delay`.
  sim_process& start(process_spec spec, duration delay, program_factory make, sim_host_id host = 0);
  void kill(std::int64_t pid, int signal_number); // takes effect before the next task
  void exit_now(std::int64_t pid, int code);      // the same, as `_exit`
  void pause(std::int64_t pid, bool paused);
  // Called after the process ended and its program is gone. For peers and parents in the simulation.
  void on_end(std::int64_t pid, std::function<void(const process_exit&)> handler);
  [[nodiscard]] sim_process* find(std::int64_t pid); // nullptr: has ended, or never was
  [[nodiscard]] std::vector<std::int64_t> alive() const;

  // Something that happens outside every process (the network), at now + delay.
  timer_id after(duration delay, task work) { return schedule(delay, nullptr, std::move(work)); }
  // A task for an executor, posted to it at now + delay, unless cancelled before it has run.
  timer_id schedule(duration delay, sim_executor* where, task work);
  void cancel(timer_id timer);

  // Runs until `over()` or nothing is left or `events_max` is spent; returns whether `over()`. `over` is
  // asked between any two tasks, and may kill, pause and continue processes.
  bool run_until(const std::function<bool()>& over, std::uint64_t events_max);
  // Ends everything and frees the programs; nobody is told. For an owner of what programs refer to.
  void close();

  [[nodiscard]] sim_hosts& hosts() { return hosts_; }
  [[nodiscard]] time_point now() const { return now_; }  // of nobody's clock
  [[nodiscard]] std::uint64_t draw(std::uint64_t below); // from the seed, in [0, below)
  [[nodiscard]] duration draw_between(duration low, duration high);
  [[nodiscard]] std::uint64_t seed() const { return seed_; }
  [[nodiscard]] std::uint64_t events() const { return events_; }
  // Digest over every choice made so far, and over what was traced: equal for equal runs (SW-1).
  [[nodiscard]] std::string trace_digest() const { return trace_.finish(); }
  void trace(std::uint64_t what, std::uint64_t detail);

private:
  friend class sim_executor;
  friend class sim_process;
  struct timer {
    time_point due;
    sim_executor* where; // nullptr: outside every process
    task work;
  };
  void list(sim_executor& queue);
  bool run_one();
  bool fire_timers();
  void run_timer(timer_id id);
  void rest(sim_executor& queue);
  void reap();
  void end(sim_process& process, process_exit how);
  void drop_timers_of(const sim_process& process);
  [[nodiscard]] const sim_cost* cost_of(const sim_executor& queue) const;

  std::uint64_t seed_;
  sim_world_settings settings_;
  sim_hosts hosts_;
  counter_rng random_;
  std::uint64_t draws_{0};
  std::uint64_t events_{0};
  time_point now_{};
  timer_id next_timer_{1};
  std::int64_t next_pid_{100};
  std::map<timer_id, timer> timers_;
  std::set<std::pair<time_point, timer_id>> due_; // those that have not been handed to their executor
  std::vector<sim_executor*> runnable_;
  std::map<std::int64_t, std::unique_ptr<sim_process>> processes_;
  std::vector<std::pair<std::int64_t, process_exit>> dying_;
  digest_builder trace_;
};

} // namespace troupe
