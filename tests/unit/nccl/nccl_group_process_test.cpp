// Rank groups over NCCL between processes, over FAKE libraries of CUDA and NCCL; some of the processes die.
#include <algorithm>
#include <csignal>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include <unistd.h>

#include "tests/unit/collective/group_for_ever.hpp"
#include "tests/unit/collective/world_processes.hpp"
#include "tests/unit/nccl/gpu_fakes.hpp"
#include "tests/unit/nccl/gpu_worlds.hpp"

namespace troupe {
namespace {

using namespace forked_ranks;
using group_contract::known_values;
using group_worlds::player;

constexpr std::uint32_t ranks = 3;

worlds::gpu_world_settings fakes(const life_settings& life = {}) {
  return {
      .name = "FAKE libraries of CUDA and NCCL, processes", .libraries = fake::library_names(), .life = life};
}

TEST_CASE(
    "nccl group: the contract of rank groups holds between processes over FAKE libraries (GR-1 to GR-6, "
    "NG-1 to NG-3)") {
  group_contract::holds_over(*group_worlds::blocking(worlds::gpu_processes(fakes())));
}

// In the next generation: everything once.
int call_everything(communicator& member, std::uint32_t rank, const known_values& known) {
  player one{member, rank};
  group_contract::script calls{one, one.group(), known};
  calls.everything();
  return group_contract::script::check(one, calls.outs);
}

// A director and three members, which call until their generation is ended; then all but rank 1 go on.
class failing_groups {
public:
  explicit failing_groups(std::size_t elements, bool shrink = false)
      : settings_{fakes({.hold_for_shrink = shrink})}
      , known_{ranks, element_type::float32, elements}
      , fewer_{ranks - 1, element_type::bfloat16, elements} {
    const auto first = director_.prepare(shape_of(1, ranks));
    const auto second =
        shrink ? "nccl:2:2:8:6001:65536:without:1" : director_.prepare(shape_of(2, ranks - 1));
    REQUIRE(!first.empty());
    for (std::uint32_t rank = 0; rank < ranks; ++rank)
      members.emplace_back([this, rank, first, second] { return run(rank, first, second); });
    REQUIRE(worlds::eventually([&] { return calls_->counts[1] > 5; }));
  }
  failing_groups(const failing_groups&) = delete;
  failing_groups& operator=(const failing_groups&) = delete;
  // What a director does once it knows.
  void end_generation() { line_.pull(ranks); }
  std::vector<child> members;

private:
  struct counters {
    std::atomic<std::uint64_t> counts[ranks]{};
  };
  static collective_shape shape_of(std::uint64_t generation, std::uint32_t world) {
    return {generation_id{generation}, world, 8, 6001, 64 * 1024};
  }

  int run(std::uint32_t rank, const std::string& first, const std::string& second) {
    auto& process = *new worlds::gpu_process{settings_}; // as long as the forked process
    if (!process.open(rank)) return 10;
    auto member = process.connect(first, shape_of(1, ranks), rank_id{rank});
    if (!member) return 11;
    auto watcher = line_.watch(**member);
    const int result = group_contract::call_for_ever(**member, rank, known_, [&] { ++calls_->counts[rank]; });
    watcher.join();
    member->reset();
    if (result != ok || rank == 1) return result;
    auto next = process.connect(second, shape_of(2, ranks - 1), rank_id{rank == 0 ? 0U : 1U});
    if (!next) return 12;
    if (call_everything(**next, rank == 0 ? 0 : 1, fewer_) != worlds::passed) return 13;
    next->reset();
    return process.settled() ? ok : 14;
  }

  const worlds::gpu_world_settings settings_;
  const known_values known_;
  const known_values fewer_;
  worlds::gpu_director director_{fake::library_names()};
  worlds::shared_object<counters> calls_;
  abort_line line_;
};

TEST_CASE(
    "nccl group over FAKE libraries: after a SIGKILL in the middle survivors abort, and call in the next "
    "generation (GR-2, GR-5)") {
  for (const std::size_t elements : {10U, 50'000U}) {
    failing_groups job{elements};
    job.members[1].kill(SIGKILL);
    CHECK(job.members[1].wait() == -SIGKILL);
    job.end_generation();
    CHECK(job.members[0].wait() == ok);
    CHECK(job.members[2].wait() == ok);
  }
}

TEST_CASE("nccl group over FAKE libraries: survivors shrink both communicators they hold (NC-6, GR-5)") {
  failing_groups job{5'000, true};
  job.members[1].kill(SIGKILL);
  job.end_generation();
  CHECK(job.members[0].wait() == ok);
  CHECK(job.members[2].wait() == ok);
}

TEST_CASE(
    "nccl group over FAKE libraries: a stopped member keeps nobody once the generation is ended (GR-2)") {
  failing_groups job{50'000};
  job.members[1].kill(SIGSTOP);
  job.end_generation();
  CHECK(job.members[0].wait() == ok);
  CHECK(job.members[2].wait() == ok);
  job.members[1].kill(SIGCONT); // it finds its own generation ended
  CHECK(job.members[1].wait() == ok);
}

} // namespace
} // namespace troupe
