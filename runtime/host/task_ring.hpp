// A first-in first-out ring of tasks that grows to the largest burst seen and never shrinks: allocation-free
// in the steady state. Not thread-safe; its owner locks.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "runtime/base/invariant.hpp"
#include "runtime/base/task.hpp"

namespace troupe {

class task_ring {
public:
  explicit task_ring(std::size_t capacity)
      : slots_(capacity > 0 ? capacity : 1) {}

  void push(task&& work) {
    if (size_ == slots_.size()) grow();
    slots_[(head_ + size_) % slots_.size()] = std::move(work);
    ++size_;
  }
  [[nodiscard]] task pop() {
    invariant(size_ > 0, "task_ring: pop() is called only while it is not empty");
    task work{std::move(slots_[head_])};
    head_ = (head_ + 1) % slots_.size();
    --size_;
    return work;
  }
  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] bool empty() const { return size_ == 0; }
  [[nodiscard]] std::size_t capacity() const { return slots_.size(); }

private:
  void grow() {
    std::vector<task> larger(slots_.size() * 2);
    for (std::size_t i = 0; i < size_; ++i)
      larger[i] = std::move(slots_[(head_ + i) % slots_.size()]);
    slots_ = std::move(larger);
    head_ = 0;
  }

  std::vector<task> slots_;
  std::size_t head_{0};
  std::size_t size_{0};
};

} // namespace troupe
