// Simulated world: one seeded driver, virtual time, one thread; every executor of every process is a queue.
//
// Flow:     executors and timers of all processes -> [sim_world] -> one task at a time
// Owns:     virtual time, the queues, the simulated processes, the random stream of the seed.
// Runs on:  the caller's thread; nothing else.
// Fails:    a run that does not end within its budget of events is reported by `run_until`.
// Invariants:
//   SW-1    one seed is one run: every choice is drawn from the seed's stream, in one order.
//   SW-2    tasks of one executor run in the order posted; between executors the seed chooses.
//   SW-3    a killed process runs no further task, and its timers never fire.
//   SW-4    time moves only when nothing is runnable.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "runtime/base/counter_rng.hpp"
#include "runtime/base/digest.hpp"
#include "runtime/base/ids.hpp"
#include "runtime/seams/clock.hpp"
#include "runtime/seams/device.hpp"
#include "runtime/seams/entropy.hpp"
#include "runtime/seams/executor.hpp"
#include "runtime/seams/process.hpp"

namespace troupe {

class sim_world;
class sim_process;

class sim_executor final : public executor {
public:
  sim_executor(sim_world& world, sim_process& owner)
      : world_{world}
      , owner_{owner} {}
  void post(task work) override;

private:
  friend class sim_world;
  friend class sim_process;
  sim_world& world_;
  sim_process& owner_;
  std::deque<task> queue_;
  bool listed_{false};
};

class sim_clock final : public clock_seam {
public:
  sim_clock(sim_world& world, sim_process& owner)
      : world_{world}
      , owner_{owner} {}
  [[nodiscard]] time_point now() const override;
  timer_id call_after(duration delay, task work) override;
  void cancel(timer_id timer) override;

private:
  sim_world& world_;
  sim_process& owner_;
};

class sim_entropy final : public entropy {
public:
  explicit sim_entropy(sim_world& world)
      : world_{world} {}
  [[nodiscard]] std::uint64_t next() override;

private:
  sim_world& world_;
};

class sim_device final : public device {
public:
  explicit sim_device(executor& queue)
      : queue_{queue} {}
  [[nodiscard]] std::string name() const override { return "cpu (simulated)"; }
  [[nodiscard]] executor& queue() override { return queue_; }

private:
  executor& queue_;
};

// What runs in a simulated process. Destroyed when the process ends; destruction must not touch the world.
class sim_program {
public:
  virtual ~sim_program() = default;
};

// One simulated process: its executors, clock and black box. Killed between two tasks, never inside one.
class sim_process {
public:
  sim_process(sim_world& world, std::int64_t pid);
  ~sim_process();
  sim_process(const sim_process&) = delete;
  sim_process& operator=(const sim_process&) = delete;

  [[nodiscard]] std::int64_t pid() const { return pid_; }
  [[nodiscard]] bool alive() const { return !ended_; }
  [[nodiscard]] bool paused() const { return paused_; }
  void request_exit(int code); // as returning from main

  sim_executor loop, device_queue, reader, storage_thread;
  sim_clock clock;
  sim_entropy random;
  sim_device compute;
  std::shared_ptr<black_box> box;
  process_spec spec;

private:
  friend class sim_world;
  std::int64_t pid_;
  bool ended_{false};
  bool paused_{false};
  process_exit end_;
  std::function<std::unique_ptr<sim_program>(sim_process&)> make_;
  std::unique_ptr<sim_program> program_;
  std::vector<std::function<void(const process_exit&)>> on_end_;
};

class sim_world {
public:
  explicit sim_world(std::uint64_t seed);
  ~sim_world();

  using program_factory = std::function<std::unique_ptr<sim_program>(sim_process&)>;
  // Starts a process; its program is made as the first task of its loop, after `delay`.
  sim_process& start(process_spec spec, duration delay, program_factory make);
  void kill(std::int64_t pid, int signal_number); // takes effect before the next task
  void pause(std::int64_t pid, bool paused);
  // Called after the process ended and its program is gone. For peers and parents in the simulation.
  void on_end(std::int64_t pid, std::function<void(const process_exit&)> handler);
  [[nodiscard]] sim_process* find(std::int64_t pid);
  [[nodiscard]] std::vector<std::int64_t> alive() const;

  // Something that happens outside every process (the network), at now + delay.
  timer_id after(duration delay, task work) { return schedule(delay, nullptr, std::move(work)); }
  timer_id schedule(duration delay, sim_process* owner, task work);
  void cancel(timer_id timer);

  // Runs until `over()` or nothing is left or `events_max` is spent; returns whether `over()`.
  bool run_until(const std::function<bool()>& over, std::uint64_t events_max);

  [[nodiscard]] time_point now() const { return now_; }
  [[nodiscard]] std::uint64_t draw(std::uint64_t below); // from the seed, in [0, below)
  [[nodiscard]] duration draw_between(duration low, duration high);
  [[nodiscard]] std::uint64_t seed() const { return seed_; }
  [[nodiscard]] std::uint64_t events() const { return events_; }
  // Digest over every choice made so far: equal for equal runs (SW-1).
  [[nodiscard]] std::string trace_digest() const { return trace_.finish(); }
  void trace(std::uint64_t what);

private:
  friend class sim_executor;
  friend class sim_process;
  struct timer {
    timer_id id;
    sim_process* owner;
    task work;
  };
  void list(sim_executor& queue);
  bool run_one();
  bool fire_timer();
  void reap();
  void end(sim_process& process, process_exit how);

  std::uint64_t seed_;
  counter_rng random_;
  std::uint64_t draws_{0};
  std::uint64_t events_{0};
  time_point now_{};
  timer_id next_timer_{1};
  std::int64_t next_pid_{100};
  std::multimap<time_point, timer> timers_;
  std::map<timer_id, time_point> timer_due_;
  std::vector<sim_executor*> runnable_;
  std::map<std::int64_t, std::unique_ptr<sim_process>> processes_;
  std::vector<std::pair<std::int64_t, process_exit>> dying_;
  digest_builder trace_;
};

} // namespace troupe
