#include <csignal>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/collective/collective_contract.hpp"
#include "tests/unit/collective/world_processes.hpp"
#include "tests/unit/nccl/gpu_fakes.hpp"
#include "tests/unit/nccl/gpu_worlds.hpp"

namespace troupe {
namespace {

constexpr int ok = 0;
constexpr std::uint32_t ranks = 3;

worlds::gpu_world_settings fakes(const life_settings& life = {}) {
  return {
      .name = "FAKE libraries of CUDA and NCCL, processes", .libraries = fake::library_names(), .life = life};
}

collective_shape shape_of(std::uint64_t generation, std::uint32_t world) {
  return {generation_id{generation}, world, 8, 6001};
}

TEST_CASE(
    "nccl collective: the contract holds between processes over FAKE libraries (CO-1, CO-2, CO-4, NS-2)") {
  contract::holds_over(*worlds::gpu_processes(fakes()));
}

TEST_CASE("nccl collective: the contract holds for sums of host memory over FAKE libraries (CO-1 to CO-5)") {
  auto settings = fakes();
  settings.sums_of_host = true;
  contract::holds_over(*worlds::gpu_processes(settings));
}

// A director and three members. In the first generation they sum until it is ended; then whoever is left goes
// on in a second one.
class failing_job {
public:
  explicit failing_job(const life_settings& life, bool shrink = false)
      : settings_{fakes(life)}
      , shrink_{shrink} {
    REQUIRE(::pipe(ends_) == 0);
    const auto first = director_.prepare(shape_of(1, ranks));
    const auto second = director_.prepare(shape_of(2, ranks - 1));
    REQUIRE(!first.empty());
    for (std::uint32_t rank = 0; rank < ranks; ++rank) {
      pids_.push_back(::fork());
      if (pids_.back() == 0) ::_exit(run(rank, first, second));
    }
  }
  ~failing_job() {
    for (const auto pid : pids_)
      if (pid > 0) ::kill(pid, SIGKILL), ::waitpid(pid, nullptr, 0);
  }
  failing_job(const failing_job&) = delete;
  failing_job& operator=(const failing_job&) = delete;

  void wait_until_busy() const {
    REQUIRE(worlds::eventually([&] { return arrivals_->counts[1] > 20; }));
  }
  void kill(std::uint32_t rank, int signal_number) const { ::kill(pids_[rank], signal_number); }
  // What a director does once it knows.
  void end_generation() const {
    const char bytes[ranks]{};
    REQUIRE(::write(ends_[1], bytes, ranks) == ranks);
  }
  // Exit code, or minus the signal.
  [[nodiscard]] int wait(std::uint32_t rank) {
    int status = 0;
    ::waitpid(std::exchange(pids_[rank], -1), &status, 0);
    return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
  }

private:
  struct counters {
    std::atomic<std::uint64_t> counts[ranks]{};
  };

  int run(std::uint32_t rank, const std::string& first, const std::string& second) {
    auto& process = *new worlds::gpu_process{settings_}; // as long as the forked process
    if (!process.open(rank)) return 1;
    const auto shape = shape_of(1, ranks);
    auto member = process.connect(first, shape, rank_id{rank}, arrivals_->counts);
    if (!member) return 2;
    std::thread{[device = process.device(), end = ends_[0]] {
      char byte = 0;
      if (::read(end, &byte, 1) == 1) device->abort(generation_id{1}, "the generation was ended");
    }}.detach();
    const reference::steps known{1, shape};
    reference::contribute(**member, shape, rank, known.shards[0]);
    for (auto sum = worlds::reduce(**member);; sum = worlds::reduce(**member)) {
      if (!sum && sum.failure().code != errc::aborted) return 3;
      if (!sum) break;
      if (!reference::same_bits(sum->sum, known.sums[0])) return 4;
    }
    member->reset();
    return rank == 1 ? ok : go_on(process, rank == 0 ? 0 : 1, second);
  }

  // Rank 1 is gone.
  int go_on(worlds::gpu_process& process, std::uint32_t rank, const std::string& fresh) const {
    const auto shape = shape_of(2, ranks - 1);
    const auto descriptor = shrink_ ? "nccl:2:2:8:6001:0:without:1" : fresh;
    auto member = process.connect(descriptor, shape, rank_id{rank});
    if (!member) return 5;
    const reference::steps known{4, shape};
    for (const auto step : {0U, 1U, 2U, 3U}) {
      reference::contribute(**member, shape, rank, known.shards[step]);
      const auto sum = worlds::reduce(**member);
      if (!sum) return 6;
      if (!reference::same_bits(sum->sum, known.sums[step])) return 7;
    }
    member->reset();
    return process.settled() ? ok : 8;
  }

  worlds::gpu_world_settings settings_;
  bool shrink_;
  worlds::gpu_director director_{settings_.libraries};
  worlds::shared_object<counters> arrivals_;
  int ends_[2]{};
  std::vector<pid_t> pids_;
};

TEST_CASE(
    "nccl collective over FAKE libraries: after a SIGKILL survivors abort, and sum in the next generation "
    "(CO-2, CO-3)") {
  failing_job job{{}};
  job.wait_until_busy();
  job.kill(1, SIGKILL);
  CHECK(job.wait(1) == -SIGKILL);
  job.end_generation();
  CHECK(job.wait(0) == ok);
  CHECK(job.wait(2) == ok);
}

TEST_CASE("nccl collective over FAKE libraries: a stopped member holds nobody once it is aborted (CO-2)") {
  failing_job job{{}};
  job.wait_until_busy();
  job.kill(1, SIGSTOP);
  job.end_generation();
  CHECK(job.wait(0) == ok);
  CHECK(job.wait(2) == ok);
  job.kill(1, SIGCONT); // it finds its own generation ended
  CHECK(job.wait(1) == ok);
}

TEST_CASE("nccl collective over FAKE libraries: survivors shrink the communicator they hold (NC-6)") {
  failing_job job{{.hold_for_shrink = true}, true};
  job.wait_until_busy();
  job.kill(1, SIGKILL);
  job.end_generation();
  CHECK(job.wait(0) == ok);
  CHECK(job.wait(2) == ok);
}

TEST_CASE("nccl collective over FAKE libraries: an abort that does not return ends the process (NC-4)") {
  const fake::variable hang{"FAKE_NCCL_ABORT", "hang"};
  failing_job job{{.abort_deadline = std::chrono::milliseconds{100}}};
  job.wait_until_busy();
  job.end_generation();
  CHECK(job.wait(0) == worlds::ended_itself % 256);
  CHECK(job.wait(2) == worlds::ended_itself % 256);
}

TEST_CASE("nccl collective over FAKE libraries: who waits for a member that never comes gives up by deadline "
          "(NC-4)") {
  const auto settings = fakes({.init_deadline = std::chrono::milliseconds{100}});
  worlds::gpu_director director{settings.libraries};
  const auto shape = shape_of(1, 2);
  const auto descriptor = director.prepare(shape);
  const auto results = worlds::run_processes(1, [&](std::uint32_t rank) {
    worlds::gpu_process process{settings};
    TROUPE_HOLDS(process.open(rank));
    auto member = process.connect(descriptor, shape, rank_id{rank});
    TROUPE_HOLDS(member);
    const auto sum = worlds::reduce(**member);
    TROUPE_HOLDS(!sum);
    TROUPE_HOLDS(sum.failure().text == "generation 1: not all ranks came within the deadline");
    member->reset();
    TROUPE_HOLDS(process.settled());
    return worlds::passed;
  });
  CHECK(results == std::vector<int>{worlds::passed});
}

} // namespace
} // namespace troupe
