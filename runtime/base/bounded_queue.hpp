// Bounded queue between threads: fixed capacity, no allocation after construction, never blocks.
//
// `try_push` refuses when full (the caller holds back), `try_pop` returns nothing when empty.
#pragma once

#include <cstddef>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

namespace troupe {

template <class T>
class bounded_queue {
public:
  explicit bounded_queue(std::size_t capacity)
      : slots_(capacity) {}

  [[nodiscard]] bool try_push(T&& value) {
    const std::lock_guard lock{mutex_};
    if (size_ == slots_.size()) return false;
    slots_[(head_ + size_) % slots_.size()] = std::move(value);
    ++size_;
    return true;
  }
  [[nodiscard]] std::optional<T> try_pop() {
    return try_pop_if([](const T&) { return true; });
  }
  // Takes the oldest value if it is wanted, and leaves it otherwise. `wanted` is called under the lock.
  template <class Predicate>
  [[nodiscard]] std::optional<T> try_pop_if(Predicate&& wanted) {
    const std::lock_guard lock{mutex_};
    if (size_ == 0 || !wanted(std::as_const(*slots_[head_]))) return std::nullopt;
    std::optional<T> value{std::move(*slots_[head_])};
    slots_[head_].reset();
    head_ = (head_ + 1) % slots_.size();
    --size_;
    return value;
  }
  void clear() {
    while (try_pop()) {
    }
  }
  [[nodiscard]] std::size_t size() const {
    const std::lock_guard lock{mutex_};
    return size_;
  }
  [[nodiscard]] std::size_t capacity() const { return slots_.size(); }

private:
  mutable std::mutex mutex_;
  std::vector<std::optional<T>> slots_;
  std::size_t head_{0};
  std::size_t size_{0};
};

} // namespace troupe
