#include <string>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include "tests/device/real_gpu.hpp"
#include "tests/unit/collective/collective_contract.hpp"
#include "tests/unit/collective/world_processes.hpp"
#include "tests/unit/nccl/gpu_worlds.hpp"

namespace troupe {
namespace {

using device_test::devices_here;
using device_test::real;

TEST_CASE("gpu_alone: the collective contract with one rank on one GPU (CO-1, CO-4)") {
  if (devices_here() == 0) SKIP("no GPU was used");
  for (const bool of_host : {false, true}) {
    const auto world = worlds::gpu_processes(real({}, of_host));
    for (const std::size_t elements : {1U, 3U, 1000U, 50'003U, 4'000'000U})
      contract::sums_are_canonical(*world, contract::shape_of(1, 8, elements), 3);
    contract::sums_are_canonical(*world, contract::shape_of(1, 8, 6001), 1000);
  }
}

// NCCL's own meeting hangs as long as a rank is missing: what frees us is real.
TEST_CASE("gpu_alone: who waits for a rank that never comes is freed by deadline and by abort (CO-2, NC-4)") {
  if (devices_here() == 0) SKIP("no GPU was used");
  for (const bool by_abort : {false, true}) {
    CAPTURE(by_abort);
    const auto settings =
        real({.init_deadline = by_abort ? std::chrono::seconds{60} : std::chrono::seconds{3}});
    worlds::gpu_director director{settings.libraries};
    const auto shape = contract::shape_of(2, 8, 6001);
    const auto descriptor = director.prepare(shape);
    REQUIRE(!descriptor.empty());
    const auto results = worlds::run_processes(1, [&](std::uint32_t rank) {
      worlds::gpu_process process{settings};
      TROUPE_HOLDS(process.open(rank));
      for (std::uint64_t generation = 1; generation <= 2; ++generation) { // and again in the next one
        auto next = shape;
        next.generation = generation_id{generation};
        auto member =
            process.connect(generation == 1 ? descriptor : director.prepare(next), next, rank_id{rank});
        TROUPE_HOLDS(member);
        if (by_abort) (*member)->abort();
        const auto sum = worlds::reduce(**member);
        TROUPE_HOLDS(!sum);
        TROUPE_HOLDS(sum.failure().code == errc::aborted);
        member->reset();
      }
      TROUPE_HOLDS(process.settled());
      return worlds::passed;
    });
    CHECK(results == std::vector<int>{worlds::passed});
  }
}

TEST_CASE("gpu_contract: the collective contract holds between GPUs (CO-1, CO-2, CO-4, NS-2)") {
  const auto devices = devices_here();
  if (devices < 2) SKIP("needs 2 GPUs or more; here: " << devices);
  for (std::uint32_t ranks = 2; ranks <= std::min(devices, 4U); ++ranks) {
    const auto of_host = worlds::gpu_processes(real({}, true));
    for (const std::size_t elements : {1U, 50'003U, 4'000'000U})
      contract::sums_are_canonical(*of_host, contract::shape_of(ranks, 8, elements), 3);
    contract::abort_frees_everybody(*of_host, contract::shape_of(ranks, 8, 6001));
    const auto world = worlds::gpu_processes(real());
    for (const std::size_t elements : {1U, 1000U, 50'003U, 4'000'000U})
      contract::sums_are_canonical(*world, contract::shape_of(ranks, 8, elements), 3);
    contract::sums_are_canonical(*world, contract::shape_of(ranks, 8, 6001), 1000);
    contract::abort_frees_everybody(*world, contract::shape_of(ranks, 8, 6001));
    contract::abort_from_another_thread(*world, contract::shape_of(ranks, 8, 6001));
    for (const std::uint64_t arrivals : {1U, 7U, 333U})
      contract::an_abort_splits_nobody(*world, contract::shape_of(ranks, 8, 6001), arrivals);
  }
}

} // namespace
} // namespace troupe
