#include "runtime/host/host_clock.hpp"

#include <memory>
#include <optional>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include "runtime/host/event_loop.hpp"
#include "tests/unit/host/allocation_count.hpp"

namespace troupe {
namespace {

using namespace std::chrono_literals;

TEST_CASE("host clock: timers fire once, in the order of their delays, not before them (HC-1)") {
  event_loop loop;
  host_clock clock{loop};
  std::vector<int> order;
  const auto start = clock.now();
  time_point second{};
  clock.call_after(20ms, [&] {
    order.push_back(2);
    second = clock.now();
  });
  clock.call_after(5ms, [&] { order.push_back(1); });
  clock.call_after(-5ms, [&] { order.push_back(0); });
  CHECK(clock.pending() == 3);
  REQUIRE(loop.run_until([&] { return order.size() == 3; }, 10s));
  CHECK(order == std::vector{0, 1, 2});
  CHECK(second - start >= 20ms);
  CHECK(clock.pending() == 0);
}

TEST_CASE("host clock: a cancelled timer never fires and its task is destroyed at once (HC-1, HC-2)") {
  event_loop loop;
  host_clock clock{loop};
  const auto held = std::make_shared<int>(1);
  const auto cancelled = clock.call_after(0ms, [held] { FAIL("must not run"); });
  clock.cancel(cancelled);
  CHECK(held.use_count() == 1);
  bool fired = false;
  clock.call_after(1ms, [&] { fired = true; });
  REQUIRE(loop.run_until([&] { return fired; }, 10s));
  clock.cancel(cancelled);
  clock.cancel(0);
  clock.cancel(12345678901234ULL);
}

TEST_CASE("host clock: a timer that has expired but not yet run can still be cancelled (HC-1)") {
  event_loop loop;
  host_clock clock{loop};
  timer_id second = 0;
  bool done = false;
  clock.call_after(0ms, [&] { clock.cancel(second); });
  second = clock.call_after(0ms, [] { FAIL("was cancelled"); });
  clock.call_after(2ms, [&] { done = true; });
  // Both have expired by the time that the loop looks at them.
  const auto start = clock.now();
  while (clock.now() - start < 1ms) {
  }
  REQUIRE(loop.run_until([&] { return done; }, 10s));
}

TEST_CASE("host clock: ids are never used twice (HC-3)") {
  event_loop loop;
  host_clock clock{loop};
  const auto first = clock.call_after(1h, [] {});
  clock.cancel(first);
  bool fired = false;
  clock.call_after(0ms, [&] { fired = true; });
  REQUIRE(loop.run_until([&] { return fired; }, 10s));
  const auto next = clock.call_after(1h, [] {});
  CHECK(next != first);
  clock.cancel(first);
  CHECK(clock.pending() == 1);
}

struct tick {
  host_clock& clock;
  int& ticks;
  void operator()() const {
    ++ticks;
    clock.call_after(0ms, tick{clock, ticks});
  }
};

TEST_CASE("host clock: arming does not allocate in the steady state") {
  event_loop loop;
  host_clock clock{loop};
  int ticks = 0;
  tick{clock, ticks}();
  REQUIRE(loop.run_until([&] { return ticks >= 20; }, 10s));
  const auto before = allocation_count();
  REQUIRE(loop.run_until([&] { return ticks >= 120; }, 10s));
  CHECK(allocation_count() == before);
}

TEST_CASE("host clock: destruction drops pending timers; their handlers find nothing (HC-2)") {
  event_loop loop;
  const auto held = std::make_shared<int>(1);
  {
    host_clock clock{loop};
    clock.call_after(1h, [held] { FAIL("must not run"); });
    clock.call_after(0ms, [held] { FAIL("must not run"); });
  }
  CHECK(held.use_count() == 1);
  bool later = false;
  loop.post([&] { later = true; });
  CHECK(loop.run_until([&] { return later; }, 10s));
}

TEST_CASE("host clock: a loop may be destroyed while timers are pending") {
  std::optional<event_loop> loop{std::in_place};
  {
    host_clock clock{*loop};
    clock.call_after(1h, [] {});
  }
  loop.reset();
}

} // namespace
} // namespace troupe
