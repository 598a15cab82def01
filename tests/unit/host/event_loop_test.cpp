#include "runtime/host/event_loop.hpp"

#include <algorithm>
#include <memory>
#include <thread>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <catch2/catch_test_macros.hpp>

#include "tests/unit/host/allocation_count.hpp"

namespace troupe {
namespace {

using namespace std::chrono_literals;

TEST_CASE("event loop: tasks run in the order posted, never inside post (EL-1)") {
  event_loop loop;
  std::vector<int> order;
  loop.post([&] {
    loop.post([&] {
      order.push_back(3);
      loop.stop();
    });
    order.push_back(1);
  });
  loop.post([&] { order.push_back(2); });
  CHECK(order.empty());
  loop.run();
  CHECK(order == std::vector{1, 2, 3});
}

TEST_CASE("event loop: tasks from several threads all run, each thread's in its order (EL-1)") {
  event_loop loop;
  std::vector<std::vector<int>> seen(3);
  int left = 3 * 1000;
  std::vector<std::jthread> threads;
  for (std::size_t t = 0; t < seen.size(); ++t) {
    threads.emplace_back([&loop, &seen, &left, t] {
      for (int i = 0; i < 1000; ++i)
        loop.post([&seen, &left, &loop, t, i] {
          seen[t].push_back(i);
          if (--left == 0) loop.stop();
        });
    });
  }
  loop.run();
  for (const auto& one : seen) {
    REQUIRE(one.size() == 1000);
    CHECK(std::is_sorted(one.begin(), one.end()));
  }
}

TEST_CASE("event loop: one that spins runs tasks, timers and what other threads post, and stops") {
  event_loop loop;
  loop.spin_for(20ms);
  int posted = 0;
  boost::asio::steady_timer timer{loop.io()};
  const auto ring = [&] {
    timer.expires_after(1ms);
    timer.async_wait([&](const boost::system::error_code&) { loop.stop(); });
  };
  std::jthread other{[&] {
    for (int i = 0; i < 1000; ++i)
      loop.post([&] { ++posted; });
    loop.post(ring);
  }};
  loop.run();
  CHECK(posted == 1000);
  CHECK(timer.expiry() <= std::chrono::steady_clock::now());
  loop.spin_for(0ms);
  loop.post(ring);
  loop.run();
}

TEST_CASE(
    "event loop: one that spins looks where it was told, between its handlers; one that does not, never") {
  event_loop loop;
  int looked = 0;
  bool inside = false;
  loop.look_with([&] {
    CHECK_FALSE(inside);
    return ++looked % 2 == 0;
  });
  const auto after = [&](int looks) {
    loop.post([&] { inside = true; });
    loop.post([&] { inside = false; });
    boost::asio::steady_timer timer{loop.io(), 1ms};
    timer.async_wait([&](const boost::system::error_code&) { loop.stop(); });
    loop.run();
    CHECK((looked > 0) == (looks > 0));
  };
  after(0);
  loop.spin_for(20ms);
  after(1);
}

struct repost {
  event_loop& loop;
  int& turns;
  void operator()() const {
    ++turns;
    loop.post(repost{loop, turns});
  }
};

TEST_CASE("event loop: a task that posts itself for ever does not starve other handlers (EL-3)") {
  event_loop loop;
  int turns = 0;
  bool other = false;
  loop.post(repost{loop, turns});
  boost::asio::post(loop.io(), [&] { other = true; });
  CHECK(loop.run_until([&] { return other && turns > 10; }, 10s));
}

TEST_CASE("event loop: posting does not allocate in the steady state (EL-4)") {
  event_loop loop;
  int turns = 0;
  loop.post(repost{loop, turns});
  REQUIRE(loop.run_until([&] { return turns >= 100; }, 10s));
  const auto before = allocation_count();
  REQUIRE(loop.run_until([&] { return turns >= 1100; }, 10s));
  CHECK(allocation_count() == before);
}

TEST_CASE("event loop: a stop before run makes it return; what was posted runs the next time") {
  event_loop loop;
  int runs = 0;
  loop.post([&] {
    ++runs;
    loop.stop();
  });
  loop.post([&] {
    ++runs;
    loop.stop();
  });
  loop.stop();
  loop.run();
  CHECK(runs == 0);
  loop.run();
  CHECK(runs == 1);
  loop.run();
  CHECK(runs == 2);
}

struct post_on_destruction {
  event_loop* loop;
  explicit post_on_destruction(event_loop& target)
      : loop{&target} {}
  post_on_destruction(post_on_destruction&& other) noexcept
      : loop{std::exchange(other.loop, nullptr)} {}
  ~post_on_destruction() {
    if (loop != nullptr) loop->post([] {});
  }
  void operator()() const {}
};

TEST_CASE("event loop: destruction destroys what has not run, also what posts while it is destroyed") {
  auto held = std::make_shared<int>(1);
  {
    event_loop loop;
    loop.post([held] { FAIL("must not run"); });
    loop.post(post_on_destruction{loop});
    boost::asio::post(loop.io(), post_on_destruction{loop});
  }
  CHECK(held.use_count() == 1);
}

TEST_CASE("event loop: run_until says when its limit passed") {
  event_loop loop;
  CHECK_FALSE(loop.run_until([] { return false; }, 1ms));
  CHECK(loop.run_until([] { return true; }, 0ms));
}

TEST_CASE("event loop: a task knows whether it is on the loop") {
  event_loop loop;
  bool inside = false;
  loop.post([&] {
    inside = loop.runs_here();
    loop.stop();
  });
  loop.run();
  CHECK(inside);
  CHECK_FALSE(loop.runs_here());
}

} // namespace
} // namespace troupe
