// The driver: order, time, kills, pauses, exits (SW-1 .. SW-4).
#include <csignal>

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include "runtime/sim/sim_process_host.hpp"
#include "runtime/sim/sim_world.hpp"

namespace troupe {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t plenty = 100'000;
const auto never = [] { return false; };

// A program that is a function, called once with its process.
class body final : public sim_program {
public:
  body(sim_process& process, const std::function<void(sim_process&)>& begin) { begin(process); }
};

sim_process& start(sim_world& world, std::function<void(sim_process&)> begin, duration delay = 0ns) {
  return world.start({}, delay, [begin = std::move(begin)](sim_process& process) {
    return std::make_unique<body>(process, begin);
  });
}

std::vector<std::string> run_busy_world(std::uint64_t seed, std::string& trace) {
  std::vector<std::string> seen;
  sim_world world{seed};
  for (int p = 0; p < 3; ++p) {
    start(world, [&seen, p](sim_process& self) {
      for (int i = 0; i < 20; ++i) {
        self.loop.post(
            [&seen, p, i] { seen.push_back("loop " + std::to_string(p) + " " + std::to_string(i)); });
        self.device_queue.post(
            [&seen, p, i] { seen.push_back("device " + std::to_string(p) + " " + std::to_string(i)); });
      }
    });
  }
  (void)world.run_until(never, plenty);
  trace = world.trace_digest();
  return seen;
}

TEST_CASE("sim world: the same seed is the same run, another seed is another (SW-1)") {
  std::string a, b, c;
  const auto first = run_busy_world(17, a);
  CHECK(first == run_busy_world(17, b));
  CHECK(a == b);
  CHECK(first != run_busy_world(18, c));
  CHECK(a != c);
}

TEST_CASE("sim world: an executor keeps the order posted, whatever the seed (SW-2)") {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    std::string trace;
    const auto seen = run_busy_world(seed, trace);
    REQUIRE(seen.size() == 120);
    for (const char* queue : {"loop 0 ", "loop 2 ", "device 1 "}) {
      int next = 0;
      for (const auto& line : seen) {
        if (line.starts_with(queue)) CHECK(line == queue + std::to_string(next++));
      }
      CHECK(next == 20);
    }
  }
}

TEST_CASE("sim world: what a task posts to its own executor waits for the virtual time of that task") {
  sim_world world{3, {.device = {10ms, 10ms}}};
  std::vector<duration> times;
  start(world, [&](sim_process& self) {
    self.device_queue.post([&] {
      self.device_queue.stretch(3);
      self.device_queue.post([&] {
        times.push_back(world.now().time_since_epoch());
        self.device_queue.post([&] { times.push_back(world.now().time_since_epoch()); });
      });
    });
  });
  (void)world.run_until(never, plenty);
  CHECK(times == std::vector<duration>{30ms, 40ms});
}

TEST_CASE("sim world: a killed process runs no further task and no timer of it fires (SW-3)") {
  sim_world world{1};
  int ran = 0;
  auto& victim = start(world, [&](sim_process& self) {
    self.clock.call_after(10ms, [&] { ++ran; });
    self.clock.call_after(1ms, [&] {
      self.self.raise_signal(SIGKILL);
      self.loop.post([&] { ++ran; });             // dropped
      self.clock.call_after(1ms, [&] { ++ran; }); // dropped
    });
    self.storage_thread.post([&] { self.storage_thread.post([&] { self.storage_thread.post([] {}); }); });
  });
  std::vector<process_exit> told;
  world.on_end(victim.pid(), [&](const process_exit& how) { told.push_back(how); });
  (void)world.run_until(never, plenty);
  CHECK(ran == 0);
  REQUIRE(told.size() == 1);
  CHECK(told.front().signalled);
  CHECK(told.front().code == SIGKILL);
  CHECK(world.find(victim.pid()) == nullptr);
  CHECK(world.alive().empty());
}

TEST_CASE("sim world: a kill between two tasks takes effect before the next one (SW-3)") {
  for (std::uint64_t at = 0; at < 40; ++at) {
    sim_world world{at};
    std::uint64_t after = 0;
    bool dead = false;
    auto& victim = start(world, [&](sim_process& self) {
      for (int i = 0; i < 30; ++i)
        self.loop.post([&] { after += dead ? 1U : 0U; });
    });
    (void)world.run_until(
        [&] {
          if (world.events() == at) {
            world.kill(victim.pid(), SIGKILL);
            dead = true;
          }
          return false;
        },
        plenty);
    CHECK(after == 0);
  }
}

TEST_CASE("sim world: time moves only when nothing is runnable (SW-4)") {
  sim_world world{3};
  std::vector<time_point> seen;
  start(world, [&](sim_process& self) {
    self.clock.call_after(5ms, [&] { seen.push_back(self.clock.now()); });
    for (int i = 0; i < 100; ++i)
      self.loop.post([&] { seen.push_back(self.clock.now()); });
  });
  (void)world.run_until(never, plenty);
  REQUIRE(seen.size() == 101);
  CHECK(std::count(seen.begin(), seen.end(), time_point{}) == 100);
  CHECK(seen.back() == time_point{5ms});
}

TEST_CASE("sim world: a timer that was cancelled never fires, also when it is due already") {
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    sim_world world{seed};
    std::vector<int> fired;
    start(world, [&](sim_process& self) {
      auto ids = std::make_shared<std::vector<timer_id>>();
      for (int i = 0; i < 2; ++i) {
        ids->push_back(self.clock.call_after(1ms, [&fired, &self, ids, i] { // the first one cancels the other
          fired.push_back(i);
          self.clock.cancel((*ids)[1 - static_cast<std::size_t>(i)]);
        }));
      }
      self.clock.cancel(self.clock.call_after(1ms, [&fired] { fired.push_back(7); }));
      self.clock.cancel(12345); // unknown: ignored
    });
    (void)world.run_until(never, plenty);
    CHECK(fired == std::vector<int>{0});
  }
}

TEST_CASE("sim world: a paused process runs nothing and loses nothing") {
  sim_world world{5};
  int ran = 0;
  auto& process = start(world, [&](sim_process& self) {
    for (int i = 1; i <= 10; ++i)
      self.clock.call_after(i * 1ms, [&] { ++ran; });
  });
  world.after(4500us, [&] { world.pause(process.pid(), true); });
  world.after(20ms, [&] {
    CHECK(ran == 4);
    world.pause(process.pid(), false);
  });
  (void)world.run_until(never, plenty);
  CHECK(ran == 10);
}

TEST_CASE("sim world: an orderly exit finishes what was posted to storage, and nothing else") {
  sim_world world{7};
  int loop = 0, storage = 0;
  auto& process = start(world, [&](sim_process& self) {
    for (int i = 0; i < 3; ++i)
      self.storage_thread.post([&] {
        ++storage;
        self.loop.post([&] { ++loop; });
      });
    self.loop.post([&] { ++loop; });
    self.request_exit(3);
  });
  std::vector<process_exit> told;
  world.on_end(process.pid(), [&](const process_exit& how) { told.push_back(how); });
  (void)world.run_until(never, plenty);
  CHECK(storage == 3);
  CHECK(loop == 0);
  REQUIRE(told.size() == 1);
  CHECK_FALSE(told.front().signalled);
  CHECK(told.front().code == 3);
}

TEST_CASE("sim world: tasks of a device take virtual time, and do not overlap") {
  sim_world world{9, {.device = {2ms, 3ms}}};
  std::vector<time_point> seen;
  start(world, [&](sim_process& self) {
    for (int i = 0; i < 5; ++i)
      self.device_queue.post([&] { seen.push_back(self.clock.now()); });
  });
  (void)world.run_until(never, plenty);
  REQUIRE(seen.size() == 5);
  for (std::size_t i = 1; i < seen.size(); ++i) {
    CHECK(seen[i] - seen[i - 1] >= 2ms);
    CHECK(seen[i] - seen[i - 1] <= 3ms);
  }
}

TEST_CASE("sim process host: a child's end reaches its parent once; signals only reach living children") {
  sim_world world{11};
  std::vector<process_exit> ends;
  std::unique_ptr<sim_process_host> host;
  auto& parent = start(world, [&](sim_process& self) {
    host = std::make_unique<sim_process_host>(world, self, [](sim_process& child) {
      return std::make_unique<body>(child, [](sim_process& begun) { begun.box->step_applied = 4; });
    });
    auto child = host->start({}, [&](const process_exit& how) { ends.push_back(how); });
    REQUIRE(child);
    self.clock.call_after(100ms, [&world, &host, &ends, pid = child->pid, box = child->box] {
      CHECK(box->step_applied == 4);
      CHECK(host->signal(pid, SIGSTOP));
      CHECK(world.find(pid)->paused());
      CHECK(host->signal(pid, SIGKILL)); // reaches a stopped one too
      CHECK(ends.empty());
    });
  });
  (void)parent;
  (void)world.run_until(never, plenty);
  REQUIRE(ends.size() == 1);
  CHECK(ends.front().code == SIGKILL);
  CHECK(host->signal(ends.front().pid, SIGKILL).failure().code == errc::not_found);
}

} // namespace
} // namespace troupe
