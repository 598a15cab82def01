// The pump on a real reader thread, its consumer on another, control calls from a third: for ThreadSanitizer.
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <stop_token>
#include <thread>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include "runtime/base/bounded_queue.hpp"
#include "runtime/data/prefetch_pump.hpp"
#include "runtime/data/synthetic_dataset.hpp"

namespace troupe {
namespace {

class thread_executor final : public executor {
public:
  thread_executor()
      : thread_{[this](const std::stop_token& stop) { run(stop); }} {}
  void post(task work) override {
    const std::lock_guard lock{mutex_};
    tasks_.push_back(std::move(work));
    changed_.notify_one();
  }

private:
  void run(const std::stop_token& stop) {
    std::unique_lock lock{mutex_};
    while (changed_.wait(lock, stop, [this] { return !tasks_.empty(); })) {
      std::vector<task> now;
      now.swap(tasks_);
      lock.unlock();
      for (auto& work : now)
        work();
      now.clear();
      lock.lock();
    }
  }
  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::vector<task> tasks_;
  std::jthread thread_;
};

// A consumer's wait: for an event, with a deadline.
class ready_signal {
public:
  void raise() {
    const std::lock_guard lock{mutex_};
    raised_ = true;
    changed_.notify_one();
  }
  bool wait() {
    std::unique_lock lock{mutex_};
    const bool seen = changed_.wait_for(lock, std::chrono::seconds{30}, [this] { return raised_; });
    raised_ = false;
    return seen;
  }

private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool raised_{false};
};

batch_assignment share_of(std::uint64_t generation, std::uint64_t first, std::uint64_t last) {
  return {generation_id{generation}, step_id{first}, step_id{last}, 0, 4, 4, 16, 7};
}

struct threaded {
  std::shared_ptr<batch_stream> stream;
  std::shared_ptr<const dataset> data{std::make_shared<synthetic_dataset>(synthetic_shape{})};
  ready_signal signal;
  thread_executor reader;

  explicit threaded(std::uint32_t credit = 3)
      : stream{std::make_shared<batch_stream>(credit, 8)} {
    stream->set_on_ready([this] { signal.raise(); });
  }
  std::optional<batch> take(std::uint64_t generation, std::uint64_t step) {
    while (true) {
      if (auto found = stream->try_next(generation_id{generation}, step_id{step})) return found;
      if (!signal.wait()) return std::nullopt;
    }
  }
};

TEST_CASE("prefetch pump: two threads exchange every batch once and in order (PF-1, PF-2, BS-2)") {
  threaded t;
  prefetch_pump pump{t.reader, t.data, t.stream, {}};
  REQUIRE(pump.start(share_of(1, 0, 2000)));
  for (std::uint64_t step = 0; step < 2000; ++step) {
    auto found = t.take(1, step);
    REQUIRE(found);
    REQUIRE(found->first_sample == step * 16);
    t.stream->give_back(std::move(*found));
  }
}

// With a credit of one the consumer finds nothing at every step: the wake-up is put to the test each time.
TEST_CASE("batch stream: no wake-up is lost at a credit of one (BS-2)") {
  threaded t{1};
  prefetch_pump pump{t.reader, t.data, t.stream, {}};
  auto small = share_of(1, 0, 20000);
  small.shard_count = 1;
  small.global_batch = 4;
  REQUIRE(pump.start(small));
  for (std::uint64_t step = 0; step < 20000; ++step) {
    auto found = t.take(1, step);
    REQUIRE(found);
    t.stream->give_back(std::move(*found));
  }
}

TEST_CASE("prefetch pump: generations change under a reading thread (PF-4, BS-1)") {
  threaded t;
  prefetch_pump pump{t.reader, t.data, t.stream, {}};
  std::uint64_t step = 0;
  for (std::uint64_t generation = 1; generation <= 200; ++generation) {
    REQUIRE(pump.start(share_of(generation, step, step + 1000)));
    for (std::uint64_t i = 0; i < generation % 5; ++i, ++step) {
      auto found = t.take(generation, step);
      REQUIRE(found);
      REQUIRE(found->generation == generation_id{generation});
      t.stream->give_back(std::move(*found));
    }
    if (generation % 7 == 0) pump.stop();
  }
}

TEST_CASE("prefetch pump: pumps come and go on one stream while a thread consumes (PF-5)") {
  threaded t;
  std::atomic<int> failures{0};
  std::jthread consumer{[&t] {
    for (std::uint64_t step = 0; step < 500; ++step) {
      auto found = t.take(1, step);
      if (!found) return; // the deadline passed: the check below says so
      t.stream->give_back(std::move(*found));
    }
  }};
  std::uint64_t restarts = 0;
  while (t.stream->next_step() < step_id{500} && restarts < 5000) {
    ++restarts;
    prefetch_hooks hooks;
    const auto first = t.stream->next_step();
    hooks.before_read = [first](step_id at) {
      if (at.value() > first.value() + 40) throw std::runtime_error{"planted"};
    };
    ready_signal failed;
    hooks.on_failed = [&failed, &failures](const prefetch_failure&) {
      ++failures;
      failed.raise();
    };
    prefetch_pump pump{t.reader, t.data, t.stream, std::move(hooks)};
    REQUIRE(pump.start(share_of(1, first.value(), 500)));
    // Every third is taken away while it reads, the others fail first, unless the end comes before.
    if (restarts % 3 != 0 && first.value() + 41 < 500) CHECK(failed.wait());
    if (first.value() + 41 >= 500) {
      consumer.join();
      break;
    }
  }
  CHECK(t.stream->next_step() == step_id{500});
  CHECK(failures > 0);
}

} // namespace
} // namespace troupe
