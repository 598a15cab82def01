#include "bench/collective/rank_measure.hpp"

#include <algorithm>
#include <chrono>
#include <span>
#include <utility>

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "transports/shm/shm_collective.hpp"

namespace troupe::bench {

namespace {

constexpr std::uint32_t warm_up_iterations = 5;

// Memory that forked ranks write their times to.
class shared_times {
public:
  explicit shared_times(std::size_t count) {
    void* memory = ::mmap(nullptr, count * sizeof(std::int64_t), PROT_READ | PROT_WRITE,
                          MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (memory != MAP_FAILED) times_ = {static_cast<std::int64_t*>(memory), count};
  }
  ~shared_times() {
    if (!times_.empty()) ::munmap(times_.data(), times_.size_bytes());
  }
  shared_times(const shared_times&) = delete;
  shared_times& operator=(const shared_times&) = delete;
  [[nodiscard]] std::span<std::int64_t> all() const { return times_; }

private:
  std::span<std::int64_t> times_;
};

void wait_for_all(communicator& start) {
  start.all_reduce([](const expected<reduction>&) {});
}

bool run_rank(const rank_setup& setup, communicator& start, std::uint32_t rank, std::uint32_t iterations,
              std::span<std::int64_t> times) {
  const auto measured = setup(rank);
  if (!measured) return false;
  for (std::uint32_t i = 0; i < warm_up_iterations + iterations; ++i) {
    measured->prepare(static_cast<float>(i));
    wait_for_all(start);
    const auto begin = std::chrono::steady_clock::now();
    if (!measured->run()) return false;
    const auto elapsed = std::chrono::steady_clock::now() - begin;
    if (i >= warm_up_iterations) times[i - warm_up_iterations] = std::chrono::nanoseconds{elapsed}.count();
  }
  wait_for_all(start); // others may need what serves this rank, still
  return true;
}

// Percentiles over the slowest rank of each iteration, in microseconds.
void summarise(std::span<const std::int64_t> times, std::uint32_t iterations, timed_row& row) {
  std::vector<std::int64_t> slowest(iterations, 0);
  for (std::uint32_t rank = 0; rank < row.ranks; ++rank)
    for (std::uint32_t i = 0; i < iterations; ++i)
      slowest[i] = std::max(slowest[i], times[std::size_t{rank} * iterations + i]);
  std::sort(slowest.begin(), slowest.end());
  const auto at = [&](std::size_t percent) {
    return static_cast<double>(slowest[(slowest.size() - 1) * percent / 100]) / 1000.0;
  };
  row.min_us = at(0);
  row.p50_us = at(50);
  row.p99_us = at(99);
}

} // namespace

expected<timed_row> measure(timed_row row, std::uint32_t iterations, const rank_setup& setup) {
  shm_collective director;
  const collective_shape meeting{generation_id{1}, row.ranks, row.ranks, 1};
  const auto descriptor = director.prepare(meeting);
  if (!descriptor) return descriptor.failure();
  const shared_times times{std::size_t{row.ranks} * iterations};
  if (times.all().empty()) return error{errc::storage_failed, "no memory for the measurements"};
  std::vector<pid_t> children;
  for (std::uint32_t rank = 0; rank < row.ranks; ++rank) {
    const auto pid = ::fork();
    if (pid != 0) {
      children.push_back(pid);
      continue;
    }
    auto start = shm_collective{}.connect(*descriptor, meeting, rank_id{rank});
    const auto own = times.all().subspan(std::size_t{rank} * iterations, iterations);
    const bool good = start && run_rank(setup, **start, rank, iterations, own);
    if (!good) director.end_generation(); // the other ranks must not wait for this one
    ::_exit(good ? 0 : 1);
  }
  bool good = true;
  for (const auto pid : children) {
    int status = 0;
    good = ::waitpid(pid, &status, 0) == pid && status == 0 && good;
  }
  if (!good) return error{errc::internal, "a rank of the measurement failed"};
  summarise(times.all(), iterations, row);
  return row;
}

double timed_row::algbw_gb_s() const {
  return static_cast<double>(bytes) / p50_us / 1000.0;
}

double timed_row::busbw_gb_s() const {
  return ranks < 2 ? algbw_gb_s() : algbw_gb_s() * 2.0 * (ranks - 1.0) / ranks;
}

} // namespace troupe::bench
