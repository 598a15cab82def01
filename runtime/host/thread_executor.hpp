// Thread executor: one named thread that runs tasks in order. The reader, the storage thread, a device's
// owner thread.
//
// Owns:     its thread, and a ring of tasks that grows to the largest burst (posting then never allocates).
// Runs on:  `post` from any thread; it takes a short lock and wakes the thread only if that is idle.
// Fails:    an exception that escapes a task is a bug (TE-2).
// Invariants:
//   TE-1    tasks run one at a time, in the order posted, on the one thread.
//   TE-2    no exception escapes a task.
//   TE-3    destruction finishes the task that runs, destroys the others unrun, and joins.
//   TE-4    `finish` runs everything posted before it, then joins; later tasks are destroyed unrun.
//   TE-5    a stretched task is followed by a rest; `finish` and destruction cut it short.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

#include "runtime/host/task_ring.hpp"
#include "runtime/seams/executor.hpp"

namespace troupe {

class thread_executor final : public executor {
public:
  // `background` (SCHED_BATCH): being woken does not interrupt the thread that posts.
  enum class urgency : unsigned char { normal, background };

  // The first 15 characters of `name` show in the system's tools.
  explicit thread_executor(std::string name, urgency how = urgency::normal);
  ~thread_executor() override;
  thread_executor(const thread_executor&) = delete;
  thread_executor& operator=(const thread_executor&) = delete;

  void post(task work) override;
  void stretch(double factor) override;
  void finish();
  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] bool runs_here() const { return std::this_thread::get_id() == id_; }

private:
  enum class phase : unsigned char { running, finishing, discarding };
  void start(urgency how);
  void serve();
  void end(phase how);
  void rest(std::unique_lock<std::mutex>& lock);

  const std::string name_;
  std::mutex mutex_;
  std::condition_variable wake_;
  task_ring ring_;
  phase phase_{phase::running};
  bool idle_{false};
  std::chrono::steady_clock::time_point task_began_; // the thread's own, like the next
  std::chrono::steady_clock::duration rest_{0};      // after the task that runs
  std::thread thread_;
  std::thread::id id_;
};

} // namespace troupe
