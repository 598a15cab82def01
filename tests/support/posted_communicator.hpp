// Posted communicator: a communicator whose device is a thread, used by a body that blocks.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "runtime/seams/collective.hpp"
#include "runtime/seams/executor.hpp"

namespace troupe::test {

// Runs `work` there and waits for it.
template <class Work>
void on(executor& where, Work work) {
  std::mutex mutex;
  std::condition_variable told;
  bool ran = false;
  where.post([&] {
    work();
    const std::lock_guard lock{mutex};
    ran = true;
    told.notify_one();
  });
  std::unique_lock lock{mutex};
  told.wait(lock, [&] { return ran; });
}

class posted_communicator final : public communicator {
public:
  posted_communicator(executor& device, std::unique_ptr<communicator> inner)
      : device_{device}
      , inner_{std::move(inner)} {}
  ~posted_communicator() override {
    on(device_, [this] { inner_.reset(); });
  }
  posted_communicator(const posted_communicator&) = delete;
  posted_communicator& operator=(const posted_communicator&) = delete;

  [[nodiscard]] std::span<float> contribution(std::size_t index) override {
    return inner_->contribution(index);
  }
  void begin(element_range part, part_done done) override {
    on(device_, [&] { inner_->begin(part, std::move(done)); });
  }
  // Answers before it returns.
  void all_reduce(all_reduce_done done) override {
    std::mutex mutex;
    std::condition_variable told;
    std::optional<expected<reduction>> answer;
    device_.post([&] {
      inner_->all_reduce([&](expected<reduction> result) {
        const std::lock_guard lock{mutex};
        answer = std::move(result);
        told.notify_one();
      });
    });
    std::unique_lock lock{mutex};
    told.wait(lock, [&] { return answer.has_value(); });
    lock.unlock();
    done(*answer);
  }
  void abort() noexcept override { inner_->abort(); }
  [[nodiscard]] std::vector<std::uint64_t> arrivals() const override { return inner_->arrivals(); }

private:
  executor& device_;
  std::unique_ptr<communicator> inner_;
};

// On the device, as a worker does.
[[nodiscard]] inline expected<std::unique_ptr<communicator>>
connect_posted(executor& device, collective& from, const std::string& descriptor,
               const collective_shape& shape, rank_id rank) {
  std::optional<expected<std::unique_ptr<communicator>>> made;
  on(device, [&] { made.emplace(from.connect(descriptor, shape, rank)); });
  if (!*made) return made->failure();
  return std::unique_ptr<communicator>{std::make_unique<posted_communicator>(device, std::move(**made))};
}

} // namespace troupe::test
