// Test driver: a few executors and one virtual clock, run on the test's thread.
//
// Tasks of one executor run in the order posted; which executor is next, the seed decides.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runtime/base/counter_rng.hpp"
#include "runtime/base/log.hpp"
#include "runtime/seams/clock.hpp"
#include "runtime/seams/executor.hpp"

namespace troupe::test {

class driver final : public clock_seam {
public:
  explicit driver(std::uint64_t seed = 1)
      : rng_{seed, stream_of("test driver")} {}

  [[nodiscard]] executor& make_executor() {
    queues_.push_back(std::make_unique<queue>());
    return *queues_.back();
  }

  [[nodiscard]] time_point now() const override { return now_; }
  timer_id call_after(duration delay, task work) override {
    timers_.emplace(std::pair{now_ + delay, ++last_timer_}, std::move(work));
    return last_timer_;
  }
  void cancel(timer_id timer) override {
    for (auto it = timers_.begin(); it != timers_.end(); ++it) {
      if (it->first.second == timer) {
        timers_.erase(it);
        return;
      }
    }
  }

  // Runs one task; false when there is none.
  bool step() {
    std::vector<queue*> ready;
    for (auto& each : queues_) {
      if (!each->tasks.empty()) ready.push_back(each.get());
    }
    if (ready.empty()) return false;
    auto& chosen = *ready[rng_.bits(draws_++) % ready.size()];
    task work = std::move(chosen.tasks.front());
    chosen.tasks.pop_front();
    work();
    return true;
  }
  // Runs everything that is ready, without moving the clock.
  std::size_t settle(std::size_t tasks_max = 1000000) {
    std::size_t count = 0;
    while (count < tasks_max && step())
      ++count;
    return count;
  }
  // Lets virtual time pass, timer by timer.
  void advance(duration span) {
    const auto end = now_ + span;
    settle();
    while (!timers_.empty() && timers_.begin()->first.first <= end) {
      auto node = timers_.extract(timers_.begin());
      now_ = std::max(now_, node.key().first);
      node.mapped()();
      settle();
    }
    now_ = end;
  }
  [[nodiscard]] std::size_t timers() const { return timers_.size(); }

private:
  struct queue final : executor {
    void post(task work) override { tasks.push_back(std::move(work)); }
    std::deque<task> tasks;
  };
  counter_rng rng_;
  std::uint64_t draws_{0};
  std::vector<std::unique_ptr<queue>> queues_;
  std::map<std::pair<time_point, timer_id>, task> timers_;
  timer_id last_timer_{0};
  time_point now_{};
};

struct memory_log final : log_sink {
  void write(log_level level, std::string_view room, std::string_view text) override {
    lines.push_back((level == log_level::error ? "error " : "") + std::string{room} + ": " +
                    std::string{text});
  }
  [[nodiscard]] bool has(std::string_view part) const {
    for (const auto& line : lines) {
      if (line.find(part) != std::string::npos) return true;
    }
    return false;
  }
  std::vector<std::string> lines;
};

} // namespace troupe::test
