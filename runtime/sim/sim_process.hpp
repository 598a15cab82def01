// Simulated process: its executors, clock, entropy, device and black box; what a `main` would have.
//
// Owns:     the queues and the program. Killed between two tasks, never inside one: a process that strikes
//           itself is dead at once to everybody else, and runs no further task.
// Runs on:  the driver's thread.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "runtime/seams/clock.hpp"
#include "runtime/seams/device.hpp"
#include "runtime/seams/entropy.hpp"
#include "runtime/seams/executor.hpp"
#include "runtime/seams/own_process.hpp"
#include "runtime/seams/process.hpp"
#include "runtime/sim/sim_hosts.hpp"

namespace troupe {

class sim_world;
class sim_process;

enum class sim_queue : std::uint8_t { loop, device, reader, storage };

class sim_executor final : public executor {
public:
  sim_executor(sim_world& world, sim_process& owner, sim_queue which)
      : world_{world}
      , owner_{owner}
      , which_{which} {}
  void post(task work) override;
  void stretch(double factor) override { stretch_ = factor; }
  [[nodiscard]] sim_process& owner() const { return owner_; }
  [[nodiscard]] std::size_t waiting() const { return queue_.size(); }

private:
  friend class sim_world;
  friend class sim_process;
  sim_world& world_;
  sim_process& owner_;
  sim_queue which_;
  std::deque<task> queue_;
  bool listed_{false};
  bool busy_{false};  // until its last task's virtual time is over
  double stretch_{1}; // of that time, for the task that runs
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

// SIGSTOP pauses, every other signal kills; both take effect before the next task.
class sim_own_process final : public own_process {
public:
  sim_own_process(sim_world& world, sim_process& owner)
      : world_{world}
      , owner_{owner} {}
  void raise_signal(int signal_number) override;
  void exit_now(int code) override;

private:
  sim_world& world_;
  sim_process& owner_;
};

// What runs in a simulated process. Destroyed when the process has ended; nothing it does then is seen.
class sim_program {
public:
  virtual ~sim_program() = default;
};

class sim_process {
public:
  sim_process(sim_world& world, std::int64_t pid, sim_host_id host);
  ~sim_process();
  sim_process(const sim_process&) = delete;
  sim_process& operator=(const sim_process&) = delete;

  [[nodiscard]] std::int64_t pid() const { return pid_; }
  [[nodiscard]] sim_host_id host() const { return host_; }
  [[nodiscard]] bool alive() const { return !ended_; }
  [[nodiscard]] bool paused() const { return paused_; }
  // As returning from main: the loop runs nothing more, what was posted to the storage thread is finished.
  void request_exit(int code);

  sim_executor loop, device_queue, reader, storage_thread;
  sim_clock clock;
  sim_entropy random;
  sim_device compute;
  sim_own_process self;
  std::shared_ptr<black_box> box;
  process_spec spec;

private:
  friend class sim_world;
  friend class sim_executor;
  [[nodiscard]] bool closed(const sim_executor& queue) const {
    return ended_ || (leaving_ && &queue != &storage_thread);
  }
  [[nodiscard]] std::array<sim_executor*, 4> queues() {
    return {&loop, &device_queue, &reader, &storage_thread};
  }
  std::int64_t pid_;
  sim_host_id host_;
  bool ended_{false};
  bool paused_{false};
  bool leaving_{false};
  int exit_code_{0};
  process_exit end_;
  std::function<std::unique_ptr<sim_program>(sim_process&)> make_;
  std::unique_ptr<sim_program> program_;
  std::vector<std::function<void(const process_exit&)>> on_end_;
};

} // namespace troupe
