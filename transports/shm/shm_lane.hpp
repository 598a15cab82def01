// Lane: where parts of a sum run beside the device, and how their owner waits for them.
//
// Runs on:  `post` and `drain` on the device's executor.
// Invariants:
//   LN-1    what is posted runs in order, or not at all where the executor ends; `drain` returns after that.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <utility>

#include "runtime/seams/executor.hpp"

namespace troupe {

class shm_lane {
public:
  // Null: work runs inside `post`.
  explicit shm_lane(executor* where)
      : where_{where} {}

  template <class Work>
  void post(Work work) {
    if (where_ == nullptr) return work();
    {
      const std::lock_guard lock{mutex_};
      ++under_way_;
    }
    where_->post([held = ticket{this}, work = std::move(work)]() mutable { work(); });
  }
  [[nodiscard]] bool busy() {
    const std::lock_guard lock{mutex_};
    return under_way_ > 0;
  }
  void drain() {
    std::unique_lock lock{mutex_};
    idle_.wait(lock, [this] { return under_way_ == 0; });
  }

private:
  // Of one piece of work, whether it ran or was destroyed unrun.
  class ticket {
  public:
    explicit ticket(shm_lane* lane)
        : lane_{lane} {}
    ticket(ticket&& other) noexcept
        : lane_{std::exchange(other.lane_, nullptr)} {}
    ticket& operator=(ticket&&) = delete;
    ~ticket() {
      if (lane_ == nullptr) return;
      const std::lock_guard lock{lane_->mutex_};
      if (--lane_->under_way_ == 0) lane_->idle_.notify_all();
    }

  private:
    shm_lane* lane_;
  };

  executor* where_;
  std::mutex mutex_;
  std::condition_variable idle_;
  std::size_t under_way_{0};
};

} // namespace troupe
