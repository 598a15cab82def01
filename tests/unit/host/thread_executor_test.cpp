#include "runtime/host/thread_executor.hpp"

#include <algorithm>
#include <chrono>
#include <latch>
#include <memory>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include "runtime/host/cpu_device.hpp"
#include "tests/unit/host/allocation_count.hpp"

namespace troupe {
namespace {

TEST_CASE("thread executor: tasks run in order on its own thread (TE-1)") {
  thread_executor worker{"troupe-test"};
  std::vector<int> order;
  bool on_thread = true;
  std::latch done{1};
  for (int i = 0; i < 1000; ++i)
    worker.post([&, i] {
      order.push_back(i);
      on_thread = on_thread && worker.runs_here();
    });
  worker.post([&] { done.count_down(); });
  done.wait();
  CHECK(order.size() == 1000);
  CHECK(std::is_sorted(order.begin(), order.end()));
  CHECK(on_thread);
  CHECK_FALSE(worker.runs_here());
}

TEST_CASE("thread executor: destruction finishes the running task and drops the others (TE-3)") {
  const auto held = std::make_shared<int>(1);
  std::latch started{1};
  std::latch may_end{1};
  bool finished = false;
  {
    std::jthread opener;
    {
      thread_executor worker{"troupe-test"};
      worker.post([&] {
        started.count_down();
        may_end.wait();
        finished = true;
      });
      started.wait();
      worker.post([held] {});
      opener = std::jthread{[&] { may_end.count_down(); }};
    }
    CHECK(finished);
  }
  CHECK(held.use_count() == 1);
}

TEST_CASE("thread executor: finish runs everything posted before it and drops what comes later (TE-4)") {
  thread_executor worker{"troupe-test"};
  int runs = 0;
  for (int i = 0; i < 100; ++i)
    worker.post([&] { ++runs; });
  worker.finish();
  CHECK(runs == 100);
  const auto held = std::make_shared<int>(1);
  worker.post([held] {});
  CHECK(held.use_count() == 1);
  worker.finish();
}

TEST_CASE("thread executor: a stretched task is followed by a rest as long as it should have taken (TE-5)") {
  thread_executor worker{"troupe-test"};
  using clock = std::chrono::steady_clock;
  clock::time_point began, ended, next;
  std::latch done{1};
  worker.post([&] {
    began = clock::now();
    while (clock::now() - began < std::chrono::milliseconds{2}) {
    }
    ended = clock::now();
    worker.stretch(5);
  });
  worker.post([&] {
    next = clock::now();
    done.count_down();
  });
  done.wait();
  CHECK(next - ended >= 4 * (ended - began));
}

TEST_CASE("thread executor: ending it cuts a rest short, and loses no task (TE-4, TE-5)") {
  thread_executor worker{"troupe-test"};
  bool ran = false;
  worker.post([&] { worker.stretch(1e12); });
  worker.post([&] { ran = true; });
  worker.finish(); // else it would take years
  CHECK(ran);
}

TEST_CASE("thread executor: posting does not allocate in the steady state") {
  thread_executor worker{"troupe-test"};
  const auto round = [&] {
    std::latch done{1};
    worker.post([&] { done.count_down(); });
    done.wait();
  };
  round();
  const auto before = allocation_count();
  for (int i = 0; i < 100; ++i)
    round();
  CHECK(allocation_count() == before);
}

TEST_CASE("cpu device: its queue is one thread, its name is cpu") {
  cpu_device device;
  std::latch done{1};
  device.queue().post([&] { done.count_down(); });
  done.wait();
  CHECK(device.name() == "cpu");
}

} // namespace
} // namespace troupe
