// Rank groups between processes, some of which die.
#include <algorithm>
#include <csignal>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include <sys/resource.h>

#include "tests/unit/collective/group_for_ever.hpp"
#include "transports/shm/shm_collective.hpp"

namespace troupe {
namespace {

using namespace forked_ranks;

TEST_CASE("rank group: the contract holds over shm processes (GR-1 to GR-6)") {
  group_contract::holds_over(*group_worlds::blocking(worlds::shm_processes(4)));
  group_contract::an_abort_splits_nobody(*worlds::shm_processes(1), group_contract::shape_of(3, 8192), 6001,
                                         50);
}

struct three_processes {
  explicit three_processes(std::size_t elements)
      : known{3, element_type::float32, elements} {
    for (std::uint32_t rank = 0; rank < 3; ++rank)
      ranks.emplace_back([&, rank] {
        auto member = shm_collective{}.connect(descriptor, shape, rank_id{rank});
        if (!member) return 1;
        auto watcher = line.watch(**member);
        const int result = group_contract::call_for_ever(**member, rank, known, [] {});
        watcher.join();
        return result;
      });
    REQUIRE(worlds::eventually([&] { return director.arrivals()[1] > 20; }));
  }
  group_contract::known_values known;
  shm_collective director;
  collective_shape shape{group_contract::shape_of(3, 8192)};
  std::string descriptor{director.prepare(shape).value()};
  abort_line line;
  std::vector<child> ranks;
};

TEST_CASE("rank group: after a SIGKILL in the middle the survivors abort from outside and return (GR-2)") {
  for (const std::size_t elements : {10U, 50'000U}) {
    three_processes three{elements};
    three.ranks[1].kill(SIGKILL);
    CHECK(three.ranks[1].wait() == -SIGKILL);
    three.line.pull(2);
    CHECK(three.ranks[0].wait() == ok);
    CHECK(three.ranks[2].wait() == ok);
  }
}

TEST_CASE("rank group: a stopped member keeps nobody once the director ends the generation (GR-2)") {
  three_processes three{50'000};
  three.ranks[2].kill(SIGSTOP);
  three.director.end_generation();
  three.line.pull(3);
  CHECK(three.ranks[0].wait() == ok);
  CHECK(three.ranks[1].wait() == ok);
  three.ranks[2].kill(SIGCONT);
  CHECK(three.ranks[2].wait() == ok);
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST_CASE("rank group: after connecting, a call touches no new page of the segment (SR-3)") {
  constexpr std::int64_t stray_faults_max = 16; // pages of stack or code; the staging has 256 a rank
  constexpr std::size_t elements = 100'000;
  const auto page_faults = [] {
    rusage usage{};
    ::getrusage(RUSAGE_SELF, &usage);
    return usage.ru_minflt + usage.ru_majflt;
  };
  const auto shape = group_contract::shape_of(3, 1024 * 1024);
  const auto results = worlds::shm_processes(4)->run(shape, [&](communicator& member, std::uint32_t rank) {
    std::vector<std::byte> in(3 * elements * 4, std::byte{1}), out(3 * elements * 4, std::byte{1});
    const auto run = [&](group_operation what, std::size_t in_parts, std::size_t out_parts) {
      what.elements = elements;
      what.in = std::span{in}.first(in_parts * elements * 4);
      what.out = std::span{out}.first(out_parts * elements * 4);
      bool right = false;
      member.group()->start(what, [&](const expected<void>& result) { right = result.has_value(); });
      return right;
    };
    const auto before = page_faults();
    TROUPE_HOLDS(run({.call = group_call::all_reduce}, 1, 1));
    TROUPE_HOLDS(run({.call = group_call::all_to_all}, 3, 3));
    TROUPE_HOLDS(run({.call = group_call::all_gather}, 1, 3));
    if (rank == 0) TROUPE_HOLDS(run({.call = group_call::send, .peer = 2}, 1, 0));
    if (rank == 2) TROUPE_HOLDS(run({.call = group_call::receive, .peer = 0}, 0, 1));
    TROUPE_HOLDS(page_faults() - before <= stray_faults_max);
    return worlds::passed;
  });
  contract::check_all_passed(results, 3);
}
#endif

} // namespace
} // namespace troupe
