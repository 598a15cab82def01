#include <atomic>
#include <csignal>
#include <thread>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/notice_board.hpp"
#include "tests/support/ring_process.hpp"
#include "tests/unit/collective/collective_contract.hpp"
#include "tests/unit/collective/group_misfits.hpp"
#include "tests/unit/ring/ring_worlds.hpp"

namespace troupe {
namespace {

TEST_CASE("ring: the contract of the collective holds between processes over UCX (CO-1, CO-2)") {
  const auto world = worlds::ring_processes({});
  for (std::uint32_t ranks = 1; ranks <= 5; ++ranks)
    contract::sums_are_canonical(*world, contract::shape_of(ranks, 8, 20'003), 3);
  contract::sums_are_canonical(*world, contract::shape_of(3, 7, 1), 3);
  contract::sums_are_canonical(*world, contract::shape_of(3, 7, 1'500'000), 3);
  contract::sums_are_canonical(*world, contract::shape_of(2, 8, 1000), 300);
  for (const std::size_t elements : {100U, 100'000U}) {
    contract::abort_frees_everybody(*world, contract::shape_of(3, 8, elements));
    contract::abort_from_another_thread(*world, contract::shape_of(3, 8, elements));
    for (const std::uint64_t arrivals : {1U, 7U, 50U})
      contract::an_abort_splits_nobody(*world, contract::shape_of(3, 8, elements), arrivals);
  }
}

TEST_CASE("ring: rank groups between processes over UCX (GR-1 to GR-6)") {
  const auto world = group_worlds::blocking(worlds::ring_processes({}));
  for (std::uint32_t ranks = 1; ranks <= 4; ++ranks)
    group_contract::calls_are_right(*world, group_contract::shape_of(ranks, 1024 * 1024), 30'001);
  group_contract::misfits_are_told(*world, 3, 4096);
  group_contract::splits_are_groups(*world, 4, 4096);
  for (const auto call : {group_call::all_reduce, group_call::broadcast, group_call::receive})
    group_contract::abort_ends_everything(*world, 3, {.call = call, .elements = 5000, .peer = 2});
}

// What the parent and its forked ranks tell each other.
struct signals {
  std::atomic<std::uint64_t> sums[3]{};
  std::atomic<bool> generation_over{false};
  std::atomic<int> finished{0};
};

// Generation 1 of three until it is over; then generation 2 of those that are left (0 and 2), in the same
// process.
int survive(std::uint32_t rank, std::size_t elements, test::notice_board& board, signals& told) {
  auto* here = new test::ring_process; // until the process exits
  auto shape = contract::shape_of(3, 8, elements);
  shape.members = board.exchange(rank, here->who());
  const reference::steps known{2, shape};
  {
    auto member = here->connect(here->ring().prepare(shape).value(), shape, rank);
    std::thread watcher{[&] {
      (void)worlds::eventually([&] { return told.generation_over.load(); });
      (*member)->abort();
    }};
    for (std::size_t step = 0;; ++step) {
      reference::contribute(**member, shape, rank, known.shards[step % 2]);
      const auto sum = worlds::reduce(**member);
      if (!sum && sum.failure().code == errc::aborted) break;
      if (!sum || !reference::same_bits(sum->sum, known.sums[step % 2])) ::_exit(2);
      ++told.sums[rank];
    }
    watcher.join();
  }
  auto next = contract::shape_of(2, 8, elements, 2);
  next.members = {shape.members[0], shape.members[2]};
  const auto next_rank = rank == 0 ? 0U : 1U;
  auto member = here->connect(here->ring().prepare(next).value(), next, next_rank);
  for (std::size_t step = 0; step < 20; ++step) {
    reference::contribute(**member, next, next_rank, known.shards[step % 2]);
    const auto sum = worlds::reduce(**member);
    if (!sum || !reference::same_bits(sum->sum, known.sums[step % 2])) return 3;
  }
  ++told.finished;
  return worlds::eventually([&] { return told.finished.load() == 2; }) ? 0 : 4;
}

TEST_CASE("ring: after a SIGKILL the survivors abort, and sum on in the same processes (CO-2, CO-3)") {
  for (const std::size_t elements : {100U, 300'000U}) {
    CAPTURE(elements);
    test::notice_board board{3};
    void* memory =
        ::mmap(nullptr, sizeof(signals), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    REQUIRE(memory != MAP_FAILED);
    auto* told = ::new (memory) signals{};
    std::vector<pid_t> children;
    for (std::uint32_t rank = 0; rank < 3; ++rank) {
      const auto pid = ::fork();
      if (pid == 0) ::_exit(survive(rank, elements, board, *told));
      children.push_back(pid);
    }
    CHECK(worlds::eventually([&] { return told->sums[1].load() > 5; }));
    ::kill(children[1], SIGKILL);
    int status = 0;
    ::waitpid(children[1], &status, 0);
    CHECK(WIFSIGNALED(status));
    told->generation_over = true;
    for (const auto survivor : {children[0], children[2]}) {
      ::waitpid(survivor, &status, 0);
      CHECK(status == 0);
    }
    ::munmap(memory, sizeof(signals));
  }
}

} // namespace
} // namespace troupe
