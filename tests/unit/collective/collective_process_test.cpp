#include <algorithm>
#include <csignal>
#include <cstdint>
#include <functional>
#include <numeric>
#include <thread>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/collective/collective_contract.hpp"
#include "tests/unit/collective/collective_worlds.hpp"
#include "tests/unit/collective/forked_ranks.hpp"
#include "transports/shm/limits.hpp"
#include "transports/shm/shm_collective.hpp"

namespace troupe {
namespace {

using namespace forked_ranks;

collective_shape three_of(std::uint64_t generation, std::size_t elements) {
  return {generation_id{generation}, 3, 8, elements};
}

int reduce_for_ever(communicator& member, const collective_shape& shape, std::uint32_t rank) {
  const reference::steps known{1, shape};
  reference::contribute(member, shape, rank, known.shards[0]);
  for (;;) {
    const auto sum = worlds::reduce(member);
    if (!sum) return sum.failure().code == errc::aborted ? ok : 2;
    if (!reference::same_bits(sum->sum, known.sums[0])) return 3;
  }
}

TEST_CASE("collective: the contract holds over shm processes (CO-1, CO-2, ME-1)") {
  contract::holds_over(*worlds::shm_processes(1));
  contract::holds_over(*worlds::shm_processes(4));
  contract::holds_for_nodes(*worlds::shm_processes(1));
}

TEST_CASE("shm collective: sums that are stored past the caches are the same to the bit (CO-1)") {
  const auto elements = limits::shm_streamed_bytes_min / sizeof(float) + 7;
  contract::sums_are_canonical(*worlds::shm_processes(4), {generation_id{1}, 3, 3, elements}, 2);
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
std::int64_t page_faults() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return usage.ru_minflt + usage.ru_majflt;
}

TEST_CASE("shm collective: after connecting, a step touches no new page (SC-2)") {
  constexpr std::int64_t stray_faults_max = 8; // a page of stack or code; one missed region is 100 times more
  for (const std::uint32_t ranks : {1U, 2U, 3U}) {
    const collective_shape shape{generation_id{1}, ranks, 8, 1'000'000};
    const auto results = worlds::shm_processes(4)->run(shape, [&](communicator& member, std::uint32_t rank) {
      const auto range = shard_range(shape.shards, shape.world, rank);
      const auto nodes = owned_nodes(shape.shards, range.first, range.count).size();
      const auto before = page_faults();
      for (std::size_t node = 0; node < nodes; ++node)
        std::ranges::fill(member.contribution(node), 0.5F);
      const auto sum = worlds::reduce(member);
      TROUPE_HOLDS(sum);
      const auto total = std::accumulate(sum->sum.begin(), sum->sum.end(), 0.0);
      TROUPE_HOLDS(total > 0.0);
      TROUPE_HOLDS(page_faults() - before <= stray_faults_max);
      return worlds::passed;
    });
    contract::check_all_passed(results, ranks);
  }
}
#endif

TEST_CASE("shm collective: after a SIGKILL in the middle the survivors abort and return (CO-2)") {
  for (const std::size_t elements : {100U, 300'000U}) {
    shm_collective director;
    const auto shape = three_of(1, elements);
    const auto descriptor = director.prepare(shape).value();
    abort_line line;
    std::vector<child> ranks;
    for (std::uint32_t rank = 0; rank < 3; ++rank)
      ranks.emplace_back([&, rank] {
        auto member = shm_collective{}.connect(descriptor, shape, rank_id{rank});
        if (!member) return 1;
        auto watcher = line.watch(**member);
        const int result = reduce_for_ever(**member, shape, rank);
        watcher.join();
        return result;
      });
    REQUIRE(worlds::eventually([&] { return director.arrivals()[1] > 20; }));
    ranks[1].kill(SIGKILL);
    CHECK(ranks[1].wait() == -SIGKILL);
    line.pull(2);
    CHECK(ranks[0].wait() == ok);
    CHECK(ranks[2].wait() == ok);
  }
}

TEST_CASE("shm collective: a zombie of an old generation cannot reach the new one (CO-3, SM-2)") {
  shm_collective director;
  const auto old_shape = three_of(1, 6000);
  const auto old_descriptor = director.prepare(old_shape).value();
  child zombie{[&] {
    auto member = shm_collective{}.connect(old_descriptor, old_shape, rank_id{0});
    if (!member) return 1;
    const auto scribble = reference::shards_at(99, old_shape.shards, old_shape.elements);
    for (;;) { // until it is killed
      reference::contribute(**member, old_shape, 0, scribble);
      if (const auto sum = worlds::reduce(**member)) return 2;
    }
  }};
  REQUIRE(worlds::eventually([&] { return director.arrivals()[0] >= 1; }));

  const auto shape = three_of(2, 6000);
  const auto descriptor = director.prepare(shape).value();
  const reference::steps known{8, shape};
  std::vector<child> ranks;
  for (std::uint32_t rank = 0; rank < 3; ++rank)
    ranks.emplace_back([&, rank] {
      if (shm_collective{}.connect(old_descriptor, old_shape, rank_id{rank})) return 1;
      auto member = shm_collective{}.connect(descriptor, shape, rank_id{rank});
      if (!member) return 1;
      for (std::size_t step = 0; step < 1000; ++step) {
        reference::contribute(**member, shape, rank, known.shards[step % known.count()]);
        const auto sum = worlds::reduce(**member);
        if (!sum) return 2;
        if (!reference::same_bits(sum->sum, known.sums[step % known.count()])) return 3;
      }
      return ok;
    });
  for (auto& rank : ranks)
    CHECK(rank.wait() == ok);
  zombie.kill(SIGKILL);
  CHECK(zombie.wait() == -SIGKILL);
}

TEST_CASE("shm collective: a stopped member is the one behind, and the others get out (CO-2)") {
  shm_collective director;
  const auto shape = three_of(1, 6000);
  const auto descriptor = director.prepare(shape).value();
  std::vector<child> ranks;
  for (std::uint32_t rank = 0; rank < 3; ++rank)
    ranks.emplace_back([&, rank] {
      auto member = shm_collective{}.connect(descriptor, shape, rank_id{rank});
      return member ? reduce_for_ever(**member, shape, rank) : 1;
    });
  REQUIRE(worlds::eventually([&] { return director.arrivals()[2] > 20; }));
  ranks[2].kill(SIGSTOP);
  // The others come to a stand before a meeting that rank 2 has not reached, or has been stopped in.
  const auto others_wait = [&] {
    const auto arrived = director.arrivals();
    return arrived[0] == arrived[1] && arrived[0] >= arrived[2];
  };
  CHECK(worlds::eventually(others_wait));
  director.end_generation();
  CHECK(ranks[0].wait() == ok);
  CHECK(ranks[1].wait() == ok);
  ranks[2].kill(SIGCONT);
  CHECK(ranks[2].wait() == ok);
}

TEST_CASE("shm collective: when its director is gone, members go on and late ones are told (SM-1)") {
  const auto shape = three_of(1, 6000);
  int told[2];
  REQUIRE(::pipe(told) == 0);
  child director_process{[&] {
    shm_collective director;
    const auto descriptor = director.prepare(shape).value();
    const auto written = ::write(told[1], descriptor.data(), descriptor.size());
    ::pause();
    return static_cast<int>(written);
  }};
  std::string descriptor(200, '\0');
  descriptor.resize(static_cast<std::size_t>(::read(told[0], descriptor.data(), descriptor.size())));
  ::close(told[0]);
  ::close(told[1]);
  shm_collective ranks;
  auto early = ranks.connect(descriptor, shape, rank_id{0});
  REQUIRE(early);
  director_process.kill(SIGKILL);
  CHECK(director_process.wait() == -SIGKILL);
  (*early)->contribution(0)[5999] = 1.0F;
  CHECK((*early)->contribution(0)[5999] == 1.0F);
  CHECK(ranks.connect(descriptor, shape, rank_id{1}).failure().code == errc::aborted);
}

} // namespace
} // namespace troupe
