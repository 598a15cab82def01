// Ring memory: what generations receive into, touched once and handed from one generation to the next.
//
// Owns:     blocks that no generation uses now, at most `spare_max`.
// Runs on:  any thread. Throws std::bad_alloc, as touched_memory does.
// Invariants:
//   RY-1    a block is in one hand at a time, and no block is kept that is twice as large as what was asked.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "runtime/base/buffer_pool.hpp"

namespace troupe {

class ring_memory : public std::enable_shared_from_this<ring_memory> {
public:
  // Floats that go back to where they came from.
  class block {
  public:
    block() = default;
    block(std::shared_ptr<ring_memory> home, touched_memory memory)
        : home_{std::move(home)}
        , memory_{std::move(memory)} {}
    block(block&&) noexcept = default;
    block& operator=(block&&) noexcept = default;
    ~block() {
      if (home_ != nullptr) home_->give(std::move(memory_));
    }
    [[nodiscard]] float* data() const { return memory_.as<float>().data(); }

  private:
    std::shared_ptr<ring_memory> home_;
    touched_memory memory_;
  };

  [[nodiscard]] block take(std::size_t floats) {
    const auto bytes = floats * sizeof(float);
    if (bytes == 0) return {};
    {
      const std::lock_guard lock{mutex_};
      const auto fits = std::ranges::find_if(spare_, [&](const touched_memory& one) {
        return one.bytes().size() >= bytes && one.bytes().size() / 2 <= bytes;
      });
      if (fits != spare_.end()) {
        auto taken = std::move(*fits);
        spare_.erase(fits);
        return {shared_from_this(), std::move(taken)};
      }
    }
    return {shared_from_this(), touched_memory{bytes}};
  }

private:
  static constexpr std::size_t spare_max = 6; // a generation's contributions, rooms and sum, and these packed

  void give(touched_memory memory) {
    const std::lock_guard lock{mutex_};
    spare_.push_back(std::move(memory));
    if (spare_.size() > spare_max) spare_.erase(spare_.begin());
  }

  std::mutex mutex_;
  std::vector<touched_memory> spare_;
};

} // namespace troupe
