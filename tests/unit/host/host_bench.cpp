// Measurements behind docs/design/0011-events-writer.md and docs/rooms/host.md. Hidden: run them with
//   build/tests/unit_host "[.bench]"
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <latch>
#include <thread>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <fcntl.h>
#include <unistd.h>

#include "runtime/host/event_loop.hpp"
#include "runtime/host/host_process.hpp"
#include "runtime/host/posix_storage.hpp"
#include "runtime/host/text_writer.hpp"
#include "runtime/host/thread_executor.hpp"
#include "tests/unit/host/temporary_directory.hpp"

namespace troupe {
namespace {

using namespace std::chrono_literals;
using steady = std::chrono::steady_clock;

void print(const char* what, std::vector<double>& us) {
  std::sort(us.begin(), us.end());
  std::printf("%-62s p50 %9.2f us  p99 %9.2f us  max %10.2f us\n", what, us[us.size() / 2],
              us[us.size() * 99 / 100], us.back());
}

double since(steady::time_point start) {
  return std::chrono::duration<double, std::micro>(steady::now() - start).count();
}

// Times `write_line` a thousand times while a thread keeps writing and flushing 64 MiB files.
template <class F>
void measure_beside_checkpoints(const char* what, const temporary_directory& directory, F&& write_line) {
  std::atomic<bool> stop{false};
  std::jthread checkpoints{[&] {
    const std::vector<std::byte> content(64U << 20U);
    const std::vector<std::span<const std::byte>> pieces{content};
    posix_storage files;
    while (!stop)
      (void)files.write_file(directory / "shard", pieces);
  }};
  event_loop pace;
  std::vector<double> us;
  for (int i = 0; i < 1000; ++i) {
    const auto start = steady::now();
    write_line();
    us.push_back(since(start));
    (void)pace.run_until([] { return false; }, 2ms);
  }
  stop = true;
  print(what, us);
}

TEST_CASE("bench: an event's line beside checkpoints that are being written", "[.bench]") {
  const temporary_directory directory;
  const std::string line(160, 'x');
  {
    const unique_fd fd{
        ::open((directory / "direct").c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666)};
    measure_beside_checkpoints("append on the event loop", directory,
                               [&] { REQUIRE(::write(fd.get(), line.data(), line.size()) > 0); });
  }
  const auto writer = text_writer::to_file(directory / "handed");
  measure_beside_checkpoints("handed to the text writer", directory, [&] { (*writer)->write(line); });
  measure_beside_checkpoints("handed to the text writer, until it is in the file", directory, [&] {
    (*writer)->write(line);
    (*writer)->flush();
  });
}

TEST_CASE("bench: event loop to thread and back", "[.bench]") {
  event_loop loop;
  thread_executor worker{"troupe-bench"};
  std::vector<double> us;
  bool back = false;
  for (int i = 0; i < 20000; ++i) {
    const auto start = steady::now();
    back = false;
    worker.post([&] { loop.post([&] { back = true; }); });
    REQUIRE(loop.run_until([&] { return back; }, 10s));
    us.push_back(since(start));
  }
  print("event loop -> thread executor -> event loop", us);
}

TEST_CASE("bench: a child's start, and its death until the handler runs", "[.bench]") {
  event_loop loop;
  host_process processes{loop};
  std::vector<double> start_us;
  std::vector<double> death_us;
  for (int i = 0; i < 200; ++i) {
    bool ended = false;
    auto start = steady::now();
    const auto child =
        processes.start({HOST_TEST_CHILD, {"wait"}, {}, {}}, [&](const process_exit&) { ended = true; });
    start_us.push_back(since(start));
    REQUIRE(child);
    while (child->box->step_started == 0)
      std::this_thread::yield();
    start = steady::now();
    REQUIRE(processes.signal(child->pid, 9));
    REQUIRE(loop.run_until([&] { return ended; }, 10s));
    death_us.push_back(since(start));
  }
  print("host_process::start returns", start_us);
  print("SIGKILL until on_exit", death_us);
}

} // namespace
} // namespace troupe
