// The contract of the collective seam, as bodies that any world can run. Each returns the failing line.
#pragma once

#include <algorithm>
#include <cstdint>
#include <thread>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include "tests/unit/collective/collective_worlds.hpp"
#include "tests/unit/collective/reference.hpp"

namespace troupe::contract {

#define TROUPE_HOLDS(condition)                                                                              \
  if (!(condition)) return __LINE__

inline void check_all_passed(const std::vector<int>& results, std::uint32_t world) {
  REQUIRE(results == std::vector<int>(world, worlds::passed));
}

// CO-1, CO-4: `steps` sums of changing values, each equal to the reference to the bit and numbered in order,
// on every rank.
inline void sums_are_canonical(worlds::world& world, const collective_shape& shape, std::size_t steps) {
  CAPTURE(world.name(), shape.world, shape.shards, shape.elements);
  const reference::steps known{std::min<std::size_t>(steps, 8), shape};
  const auto results = world.run(shape, [&](communicator& member, std::uint32_t rank) {
    for (std::size_t step = 0; step < steps; ++step) {
      reference::contribute(member, shape, rank, known.shards[step % known.count()]);
      const auto made = worlds::reduce(member);
      TROUPE_HOLDS(made);
      TROUPE_HOLDS(reference::same_bits(made->sum, known.sums[step % known.count()]));
      TROUPE_HOLDS(made->number == step + 1); // CO-4
    }
    return worlds::passed;
  });
  check_all_passed(results, shape.world);
}

// CO-2: the last rank never comes, and aborts once all others wait.
inline void abort_frees_everybody(worlds::world& world, const collective_shape& shape) {
  CAPTURE(world.name(), shape.world, shape.elements);
  const auto results = world.run(shape, [&](communicator& member, std::uint32_t rank) {
    if (rank + 1 == shape.world) {
      const bool all_wait = worlds::eventually([&] {
        const auto arrived = member.arrivals();
        return std::count(arrived.begin(), arrived.end(), 1U) >= (world.hears_all() ? shape.world - 1 : 1);
      });
      TROUPE_HOLDS(all_wait);
      TROUPE_HOLDS(member.arrivals()[rank] == 0); // the one that is behind is named
      member.abort();
      member.abort(); // idempotent
    }
    for (int attempt = 0; attempt < 2; ++attempt) { // pending, then later ones
      const auto sum = worlds::reduce(member);
      TROUPE_HOLDS(!sum);
      TROUPE_HOLDS(sum.failure().code == errc::aborted);
    }
    return worlds::passed;
  });
  check_all_passed(results, shape.world);
}

// CO-2: `abort` from another thread of a member that waits itself.
inline void abort_from_another_thread(worlds::world& world, const collective_shape& shape) {
  CAPTURE(world.name(), shape.world, shape.elements);
  const auto results = world.run(shape, [&](communicator& member, std::uint32_t rank) {
    if (rank + 1 == shape.world) { // stays away until the others are free, then finds the same answer
      TROUPE_HOLDS(worlds::eventually([&] { return member.arrivals()[0] == 1; }));
    }
    bool waited = false;
    std::thread watcher;
    if (rank == 0)
      watcher = std::thread{[&] {
        waited = worlds::eventually([&] { return member.arrivals()[0] == 1; });
        member.abort();
      }};
    if (rank + 1 != shape.world) {
      const auto sum = worlds::reduce(member);
      if (watcher.joinable()) watcher.join();
      TROUPE_HOLDS(rank != 0 || waited);
      TROUPE_HOLDS(!sum);
      TROUPE_HOLDS(sum.failure().code == errc::aborted);
    }
    return worlds::passed;
  });
  check_all_passed(results, shape.world);
}

// CO-2, ME-1: an abort strikes somewhere in a busy run. Where a sum is complete for all ranks or for none,
// all leave with the same number of sums; elsewhere they are one sum apart at most: nobody ends the next sum
// before all have ended this one.
inline void an_abort_splits_nobody(worlds::world& world, const collective_shape& shape,
                                   std::uint64_t after_arrivals) {
  CAPTURE(world.name(), shape.world, shape.elements, after_arrivals);
  constexpr int counted = 100'000; // keeps counts apart from line numbers
  const reference::steps known{1, shape};
  const auto results = world.run(shape, [&](communicator& member, std::uint32_t rank) {
    reference::contribute(member, shape, rank, known.shards[0]);
    std::thread watcher;
    bool struck = true;
    if (rank == 0)
      watcher = std::thread{[&] {
        struck = worlds::eventually([&] { return member.arrivals()[0] >= after_arrivals; });
        member.abort();
      }};
    int sums = 0;
    bool right = true;
    auto sum = worlds::reduce(member);
    for (; sum; sum = worlds::reduce(member), ++sums)
      right = right && reference::same_bits(sum->sum, known.sums[0]);
    if (watcher.joinable()) watcher.join();
    TROUPE_HOLDS(struck);
    TROUPE_HOLDS(right);
    TROUPE_HOLDS(sum.failure().code == errc::aborted);
    return counted + sums;
  });
  const auto [least, most] = std::ranges::minmax(results);
  CAPTURE(results);
  REQUIRE(least >= counted);
  REQUIRE(most - least <= (world.splits_nobody() ? 0 : 1));
}

inline collective_shape shape_of(std::uint32_t world, std::uint32_t shards, std::size_t elements,
                                 std::uint64_t generation = 1) {
  return {generation_id{generation}, world, shards, elements};
}

// Everything above, over one world. Sizes: below a cache line, below the world, around the switch between the
// small and the large algorithm, and not a multiple of anything.
inline void holds_over(worlds::world& world) {
  for (std::uint32_t ranks = 1; ranks <= 4; ++ranks) {
    for (const std::size_t elements : {1U, 3U, 16U, 1000U, 4096U, 4097U, 50'003U})
      sums_are_canonical(world, shape_of(ranks, 8, elements), 3);
    sums_are_canonical(world, shape_of(ranks, 7, 5003), 3);
    sums_are_canonical(world, shape_of(ranks, 1, 5003), 3);
  }
  for (const std::size_t elements : {33U, 6001U}) { // both algorithms
    sums_are_canonical(world, shape_of(3, 8, elements), 1000);
    for (std::uint32_t ranks = 2; ranks <= 4; ++ranks) {
      abort_frees_everybody(world, shape_of(ranks, 8, elements));
      abort_from_another_thread(world, shape_of(ranks, 8, elements));
      for (const std::uint64_t arrivals : {1U, 2U, 7U, 50U, 333U})
        an_abort_splits_nobody(world, shape_of(ranks, 8, elements), arrivals);
    }
  }
}

} // namespace troupe::contract
