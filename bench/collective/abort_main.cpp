// allreduce_abort [RANKS]...: from the director's abort to the return of the last of the members that wait
// for one that never comes. By hand; not part of `bench allreduce`.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <span>
#include <vector>

#include <sched.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/support/quantiles.hpp"
#include "transports/shm/shm_collective.hpp"

namespace {

using namespace troupe;
using steady = std::chrono::steady_clock;

constexpr std::uint32_t ranks_max = 64;
constexpr std::uint32_t repetitions = 100;

std::int64_t now_ns() {
  return std::chrono::nanoseconds{steady::now().time_since_epoch()}.count();
}

std::vector<pid_t> fork_waiting(const std::string& descriptor, const collective_shape& shape,
                                std::span<std::int64_t> returned) {
  std::vector<pid_t> children;
  for (std::uint32_t rank = 1; rank < shape.world; ++rank) {
    const auto pid = ::fork();
    if (pid != 0) {
      children.push_back(pid);
      continue;
    }
    auto member = shm_collective{}.connect(descriptor, shape, rank_id{rank});
    if (!member) ::_exit(1);
    (*member)->all_reduce([](const expected<reduction>&) {});
    returned[rank] = now_ns();
    ::_exit(0);
  }
  return children;
}

// One generation; microseconds, or nothing where a member failed.
std::optional<double> abort_once(std::uint32_t ranks, std::uint64_t generation,
                                 std::span<std::int64_t> returned) {
  shm_collective director;
  const collective_shape shape{generation_id{generation}, ranks, ranks, 1024};
  const auto descriptor = director.prepare(shape);
  if (!descriptor) return std::nullopt;
  const auto children = fork_waiting(*descriptor, shape, returned);
  const auto waiting = [&] {
    const auto arrived = director.arrivals();
    return std::count(arrived.begin(), arrived.end(), 1U) == ranks - 1;
  };
  while (!waiting())
    ::sched_yield();
  const auto asleep = steady::now() + std::chrono::milliseconds{2}; // past spinning
  while (steady::now() < asleep)
    ::sched_yield();
  const auto begin = now_ns();
  director.end_generation();
  bool good = true;
  for (const auto pid : children) {
    int status = 0;
    good = ::waitpid(pid, &status, 0) == pid && status == 0 && good;
  }
  if (!good) return std::nullopt;
  return static_cast<double>(*std::ranges::max_element(returned.first(ranks).subspan(1)) - begin) / 1000;
}

} // namespace

int main(int argc, char** argv) {
  std::vector<std::uint32_t> worlds;
  for (int i = 1; i < argc; ++i)
    worlds.push_back(static_cast<std::uint32_t>(std::strtoul(argv[i], nullptr, 10)));
  if (worlds.empty()) worlds = {2, 4};
  void* memory = ::mmap(nullptr, ranks_max * sizeof(std::int64_t), PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return EXIT_FAILURE;
  const std::span returned{static_cast<std::int64_t*>(memory), ranks_max};
  for (const auto ranks : worlds) {
    if (ranks < 2 || ranks > ranks_max) return EXIT_FAILURE;
    std::vector<double> times;
    for (std::uint64_t i = 1; i <= repetitions; ++i) {
      const auto time = abort_once(ranks, i, returned);
      if (!time) return EXIT_FAILURE;
      times.push_back(*time);
    }
    std::printf("abort with %u ranks: p50 %.0f us, p99 %.0f us\n", ranks, bench::quantile(times, 0.5),
                bench::quantile(times, 0.99));
  }
  return EXIT_SUCCESS;
}
