// Test loop: a real event loop with the seams that a transport needs, run until something has happened.
//
// Tests wait for events, with a deadline that only a broken test reaches; nothing here asserts a duration.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <random>

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>

#include "runtime/seams/clock.hpp"
#include "runtime/seams/entropy.hpp"
#include "runtime/seams/executor.hpp"

namespace troupe::test {

class asio_clock final : public clock_seam {
public:
  explicit asio_clock(boost::asio::io_context& loop)
      : loop_{loop} {}

  [[nodiscard]] time_point now() const override {
    return time_point{std::chrono::steady_clock::now().time_since_epoch()};
  }
  timer_id call_after(duration delay, task work) override {
    const auto id = ++last_;
    auto& added = timers_[id];
    added.timer = std::make_unique<boost::asio::steady_timer>(loop_, delay);
    added.work = std::move(work);
    added.timer->async_wait([this, id](const boost::system::error_code& failed) {
      if (failed) return;
      const auto found = timers_.find(id);
      if (found == timers_.end()) return;
      auto ready = std::move(found->second.work);
      timers_.erase(found);
      ready();
    });
    return id;
  }
  void cancel(timer_id timer) override { timers_.erase(timer); }
  [[nodiscard]] std::size_t pending() const { return timers_.size(); }

private:
  struct entry {
    std::unique_ptr<boost::asio::steady_timer> timer;
    task work;
  };
  boost::asio::io_context& loop_;
  std::map<timer_id, entry> timers_;
  timer_id last_{0};
};

class asio_executor final : public executor {
public:
  explicit asio_executor(boost::asio::io_context& loop)
      : loop_{loop} {}
  void post(task work) override {
    boost::asio::post(loop_, [ready = std::move(work)]() mutable { ready(); });
  }

private:
  boost::asio::io_context& loop_;
};

class random_entropy final : public entropy {
public:
  [[nodiscard]] std::uint64_t next() override { return (std::uint64_t{device_()} << 32U) | device_(); }

private:
  std::random_device device_;
};

class asio_loop {
public:
  boost::asio::io_context context;
  asio_clock clock{context};
  asio_executor queue{context};
  random_entropy random;

  // Runs the loop until `happened`; false when the deadline passed first.
  bool run_until(const std::function<bool()>& happened,
                 std::chrono::steady_clock::duration deadline = std::chrono::seconds{20}) {
    const auto end = std::chrono::steady_clock::now() + deadline;
    while (!happened()) {
      if (context.stopped()) context.restart();
      if (std::chrono::steady_clock::now() >= end) return false;
      context.run_one_for(std::chrono::milliseconds{200});
    }
    return true;
  }
};

} // namespace troupe::test
