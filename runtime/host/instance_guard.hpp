// Instance guard: at most one job uses a checkpoint directory.
//
// The lock is a flock on the directory itself: no extra file, nothing stale after a crash. Children inherit
// the descriptor (name it in process_spec::inherited_fds), and the lock holds until the last of them has
// ended: after a director was killed, its workers may still be writing, and a new job waits for them.
//
// Runs on:  the event loop.
// Fails:    errc::bad_argument: in use by another job for longer than the caller waits; not_found and
//           storage_failed as for any file.
// Invariants:
//   IG-1    of the jobs on this machine, one at most has the lock of a directory.
//   IG-2    the lock is free as soon as no process that inherited it runs.
#pragma once

#include <memory>
#include <string>

#include "runtime/base/error.hpp"
#include "runtime/base/task.hpp"
#include "runtime/host/unique_fd.hpp"
#include "runtime/seams/clock.hpp"

namespace troupe {

class instance_guard {
public:
  enum class outcome : unsigned char { locked, held_by_others };

  [[nodiscard]] static expected<std::unique_ptr<instance_guard>> open(const std::string& directory);
  ~instance_guard(); // a pending `lock_within` is dropped; the lock is left to the children that have it
  instance_guard(const instance_guard&) = delete;
  instance_guard& operator=(const instance_guard&) = delete;

  [[nodiscard]] expected<outcome> try_lock();
  // Tries at once, then every 50 ms until `limit` has passed. `done` is called once, possibly inside this
  // call. The clock outlives the guard.
  void lock_within(clock_seam& clock, duration limit, inline_function<void(expected<void>)> done);
  [[nodiscard]] int fd() const { return fd_.get(); }

private:
  instance_guard(std::string directory, unique_fd fd);
  void retry();

  std::string directory_;
  unique_fd fd_;
  clock_seam* clock_{nullptr};
  timer_id timer_{0};
  time_point started_{};
  duration limit_{};
  inline_function<void(expected<void>)> done_;
};

} // namespace troupe
