// Actor scheduler benchmark: our scheduler on the event loop beside the two that CAF brings.
//
//   actors_bench [ROUNDS]
//
// For each: a local round trip and a one-way message (nanoseconds, median of five runs), how long an actor
// sleeps on after a message from another thread (microseconds, p50 and p99 of 200, after 2 ms of quiet), and
// the processor time that one idle second costs.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <sys/resource.h>

#include <caf/all.hpp>

#include "actors/system/actor_runtime.hpp"
#include "runtime/host/event_loop.hpp"
#include "runtime/host/host_clock.hpp"
#include "runtime/host/spdlog_sink.hpp"

namespace {

using namespace troupe;
using steady = std::chrono::steady_clock;

std::int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(steady::now().time_since_epoch()).count();
}

double processor_seconds() {
  rusage use{};
  ::getrusage(RUSAGE_SELF, &use);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6;
  };
  return seconds(use.ru_utime) + seconds(use.ru_stime);
}

struct row {
  double round_trip_ns{0};
  double one_way_ns{0};
  double wake_p50_us{0};
  double wake_p99_us{0};
  double idle_percent{0};
};

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

// Waits for what never comes.
void quiet(std::chrono::milliseconds span) {
  std::promise<void> never;
  never.get_future().wait_for(span);
}

void wait_for(const std::atomic<bool>& flag) {
  flag.wait(false);
}

// Ping and pong pass a number down to 0.
double round_trip(caf::actor_system& system, int rounds) {
  std::atomic<bool> done{false};
  auto pong =
      system.spawn([](caf::event_based_actor*) -> caf::behavior { return {[](int left) { return left; }}; });
  auto ping = system.spawn([&, pong](caf::event_based_actor* self) -> caf::behavior {
    return {[&, self, pong](int left) {
      if (left > 0) return self->send(pong, left - 1);
      done = true;
      done.notify_one();
    }};
  });
  const auto begin = now_ns();
  caf::anon_send(ping, rounds);
  wait_for(done);
  return static_cast<double>(now_ns() - begin) / rounds;
}

double one_way(caf::actor_system& system, int messages) {
  std::atomic<bool> done{false};
  auto sink = system.spawn([&](caf::event_based_actor*) -> caf::behavior {
    return {[&](int left) {
      if (left > 0) return;
      done = true;
      done.notify_one();
    }};
  });
  const auto begin = now_ns();
  system.spawn([=](caf::event_based_actor* self) {
    for (int left = messages - 1; left >= 0; --left)
      self->send(sink, left);
  });
  wait_for(done);
  return static_cast<double>(now_ns() - begin) / messages;
}

std::vector<double> wake_ups(caf::actor_system& system) {
  static constexpr int samples = 200;
  std::atomic<std::int64_t> woken_at{0};
  auto sleeper = system.spawn([&](caf::event_based_actor*) -> caf::behavior {
    return {[&](int) {
      woken_at = now_ns();
      woken_at.notify_one();
    }};
  });
  std::vector<double> us;
  for (int i = 0; i < samples; ++i) {
    quiet(std::chrono::milliseconds{2});
    woken_at = 0;
    const auto begin = now_ns();
    caf::anon_send(sleeper, i);
    woken_at.wait(0);
    us.push_back(static_cast<double>(woken_at - begin) * 1e-3);
  }
  std::ranges::sort(us);
  return us;
}

row measure(caf::actor_system& system, int rounds) {
  row result;
  std::vector<double> trips, ways;
  for (int i = 0; i < 5; ++i) {
    trips.push_back(round_trip(system, rounds));
    ways.push_back(one_way(system, rounds));
  }
  result.round_trip_ns = median(trips);
  result.one_way_ns = median(ways);
  const auto wakes = wake_ups(system);
  result.wake_p50_us = wakes[wakes.size() / 2];
  result.wake_p99_us = wakes[wakes.size() * 99 / 100];
  const auto before = processor_seconds();
  quiet(std::chrono::seconds{1});
  result.idle_percent = (processor_seconds() - before) * 100.0;
  return result;
}

row measure_loop(int rounds) {
  spdlog_sink log{log_level::warning};
  event_loop loop;
  host_clock clock{loop};
  actor_runtime runtime{loop, clock, log};
  std::thread thread{[&] { loop.run(); }};
  const auto result = measure(runtime.system(), rounds);
  loop.stop();
  thread.join();
  return result;
}

row measure_caf(const char* policy, int rounds) {
  caf::actor_system_config config;
  config.set("scheduler.policy", caf::atom_from_string(policy));
  config.set("scheduler.max-threads", std::size_t{2});
  caf::actor_system system{config};
  return measure(system, rounds);
}

void print(const char* name, const row& r) {
  std::printf("%-10s %10.0f %10.0f %10.1f %10.1f %10.2f\n", name, r.round_trip_ns, r.one_way_ns,
              r.wake_p50_us, r.wake_p99_us, r.idle_percent);
}

} // namespace

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 200000;
  std::printf("%-10s %10s %10s %10s %10s %10s\n", "scheduler", "trip_ns", "way_ns", "wake_p50us",
              "wake_p99us", "idle_%");
  print("loop", measure_loop(rounds));
  print("sharing", measure_caf("sharing", rounds));
  print("stealing", measure_caf("stealing", rounds));
}
