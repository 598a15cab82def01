// Posted communicator: a communicator whose device is a thread, used by a body that blocks.
#pragma once

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "runtime/base/invariant.hpp"
#include "runtime/seams/collective.hpp"
#include "runtime/seams/executor.hpp"

namespace troupe::test {

// Runs `begin(answer)` there and waits until somebody calls `answer` with what it is asked for.
template <class Answer, class Begin>
Answer answer_from(executor& where, Begin begin) {
  std::mutex mutex;
  std::condition_variable told;
  std::optional<Answer> answer;
  where.post([&] {
    begin([&](Answer given) {
      const std::lock_guard lock{mutex};
      answer = std::move(given);
      told.notify_one();
    });
  });
  std::unique_lock lock{mutex};
  const bool came = told.wait_for(lock, std::chrono::minutes{4}, [&] { return answer.has_value(); });
  invariant(came, "posted: what a test waits for comes");
  return std::move(*answer);
}

// Runs `work` there and waits for it.
template <class Work>
void on(executor& where, Work work) {
  (void)answer_from<bool>(where, [&](auto done) {
    work();
    done(true);
  });
}

// A rank group whose calls answer before they return.
class posted_group final : public rank_group {
public:
  posted_group(executor& device, rank_group& inner)
      : device_{device}
      , inner_{&inner} {}
  posted_group(executor& device, std::unique_ptr<rank_group> inner)
      : device_{device}
      , owned_{std::move(inner)}
      , inner_{owned_.get()} {}
  ~posted_group() override {
    if (owned_ != nullptr) on(device_, [this] { owned_.reset(); });
  }
  posted_group(const posted_group&) = delete;
  posted_group& operator=(const posted_group&) = delete;

  [[nodiscard]] std::uint32_t rank() const override { return inner_->rank(); }
  [[nodiscard]] std::uint32_t world() const override { return inner_->world(); }
  void start(const group_operation& what, group_done done) override {
    done(answer_from<expected<void>>(device_, [&](auto answer) { inner_->start(what, answer); }));
  }
  [[nodiscard]] expected<std::unique_ptr<rank_group>> split(std::span<const std::uint32_t> ranks) override {
    std::optional<expected<std::unique_ptr<rank_group>>> made;
    on(device_, [&] { made.emplace(inner_->split(ranks)); });
    if (!*made || **made == nullptr) return std::move(*made);
    return std::unique_ptr<rank_group>{std::make_unique<posted_group>(device_, std::move(**made))};
  }

private:
  executor& device_;
  std::unique_ptr<rank_group> owned_;
  rank_group* inner_;
};

class posted_communicator final : public communicator {
public:
  posted_communicator(executor& device, std::unique_ptr<communicator> inner)
      : device_{device}
      , inner_{std::move(inner)} {
    if (auto* group = inner_->group()) group_ = std::make_unique<posted_group>(device_, *group);
  }
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
    done(answer_from<expected<reduction>>(device_, [&](auto answer) { inner_->all_reduce(answer); }));
  }
  void abort() noexcept override { inner_->abort(); }
  [[nodiscard]] std::vector<std::uint64_t> arrivals() const override { return inner_->arrivals(); }
  [[nodiscard]] rank_group* group() override { return group_.get(); }

private:
  executor& device_;
  std::unique_ptr<communicator> inner_;
  std::unique_ptr<posted_group> group_;
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
