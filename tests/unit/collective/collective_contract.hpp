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

// Writes `ready` into the elements [part) of the rank's contributions.
inline void write_part(communicator& member, const std::vector<reference::buffer>& ready,
                       element_range part) {
  for (std::size_t i = 0; i < ready.size(); ++i)
    std::copy(ready[i].begin() + static_cast<std::ptrdiff_t>(part.begin),
              ready[i].begin() + static_cast<std::ptrdiff_t>(part.end),
              member.contribution(i).begin() + static_cast<std::ptrdiff_t>(part.begin));
}

// As a step does: part by part, the rest still being those of the step before. Stops after `most` parts.
inline void begin_in_parts(communicator& member, const std::vector<reference::buffer>& ready,
                           const std::vector<element_range>& parts, std::size_t most = ~std::size_t{0}) {
  for (std::size_t i = 0; i < std::min(most, parts.size()); ++i) {
    write_part(member, ready, parts[i]);
    member.begin(parts[i], {});
  }
}

inline void write_rest(communicator& member, const std::vector<reference::buffer>& ready,
                       const std::vector<element_range>& parts, std::size_t elements) {
  write_part(member, ready, {0, parts.empty() ? elements : parts.back().begin});
  if (!parts.empty()) write_part(member, ready, {parts.front().end, elements});
}

// CO-1, CO-4, CO-5: however a sum is cut into parts, its bits and its number are those of a whole one.
inline void parts_change_nothing(worlds::world& world, const collective_shape& shape, std::uint64_t seeds) {
  CAPTURE(world.name(), shape.world, shape.shards, shape.elements);
  const reference::steps known{std::min<std::size_t>(seeds, 4), shape};
  const auto results = world.run(shape, [&](communicator& member, std::uint32_t rank) {
    for (std::uint64_t seed = 0; seed < seeds; ++seed) {
      const auto ready = reference::contributions_of(shape, rank, known.shards[seed % known.count()]);
      const auto parts =
          seed % 5 == 4 ? std::vector<element_range>{} : reference::parts_at(seed, shape.elements);
      begin_in_parts(member, ready, parts);
      write_rest(member, ready, parts, shape.elements);
      const auto made = worlds::reduce(member);
      TROUPE_HOLDS(made);
      TROUPE_HOLDS(reference::same_bits(made->sum, known.sums[seed % known.count()]));
      TROUPE_HOLDS(made->number == seed + 1);
    }
    return worlds::passed;
  });
  check_all_passed(results, shape.world);
}

// The same of ranks that hold a part of the shards, of which every maximal node is a sum.
inline void nodes_are_canonical(worlds::world& world, const collective_shape& shape, std::uint64_t seeds) {
  CAPTURE(world.name(), shape.cuts, shape.shards, shape.elements);
  const reference::steps known{1, shape};
  const auto sums = reference::sums_of(shape, known.shards[0]);
  const auto results = world.run(shape, [&](communicator& member, std::uint32_t rank) {
    const auto ready = reference::contributions_of(shape, rank, known.shards[0]);
    for (std::uint64_t seed = 0; seed < seeds; ++seed) {
      const auto parts = reference::parts_at(seed, shape.elements);
      begin_in_parts(member, ready, parts);
      write_rest(member, ready, parts, shape.elements);
      const auto made = worlds::reduce(member);
      TROUPE_HOLDS(made);
      for (std::size_t i = 0; i < sums.size(); ++i)
        TROUPE_HOLDS(reference::same_bits(made->at(i), sums[i]));
    }
    return worlds::passed;
  });
  check_all_passed(results, shape.world);
}

// CO-2, CO-5: the last rank begins `most` parts of the second sum and aborts; nobody gets that sum.
inline void abort_after_parts(worlds::world& world, const collective_shape& shape, std::uint64_t seed,
                              std::size_t most) {
  CAPTURE(world.name(), shape.world, shape.elements, seed, most);
  const reference::steps known{2, shape};
  const auto results = world.run(shape, [&](communicator& member, std::uint32_t rank) {
    const auto parts = reference::parts_at(seed, shape.elements);
    for (std::size_t step = 0; step < 2; ++step) {
      const bool leaves = step == 1 && rank + 1 == shape.world;
      const auto ready = reference::contributions_of(shape, rank, known.shards[step]);
      std::thread watcher; // parts may be summed inside `begin`, which then waits for the abort
      if (leaves) watcher = std::thread{[&] { member.abort(); }};
      begin_in_parts(member, ready, parts, leaves ? most : parts.size());
      if (watcher.joinable()) watcher.join();
      if (!leaves) write_rest(member, ready, parts, shape.elements);
      const auto made = worlds::reduce(member);
      const bool split = !made && made.failure().code == errc::aborted && !world.splits_nobody();
      if (step == 0 && split) return worlds::passed;
      if (step == 0) {
        TROUPE_HOLDS(made && reference::same_bits(made->sum, known.sums[0]));
      } else {
        TROUPE_HOLDS(!made && made.failure().code == errc::aborted);
      }
    }
    return worlds::passed;
  });
  check_all_passed(results, shape.world);
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

// Sums in parts, over one world.
inline void holds_in_parts(worlds::world& world) {
  for (std::uint32_t ranks = 1; ranks <= 4; ++ranks) {
    for (const std::size_t elements : {2U, 33U, 5000U, 50'003U})
      parts_change_nothing(world, shape_of(ranks, 8, elements), 20);
    parts_change_nothing(world, shape_of(ranks, 3, 6001), 20); // a rank without shards
  }
  parts_change_nothing(world, shape_of(3, 8, 6001), 300);
  for (std::uint32_t ranks = 2; ranks <= 4; ++ranks)
    for (std::uint64_t seed = 0; seed < 3; ++seed)
      for (std::size_t most = 0; most <= 5; ++most)
        abort_after_parts(world, shape_of(ranks, 8, 6001), seed, most);
}

// Ranks that hold a part of the shards, over one world.
inline void holds_for_nodes(worlds::world& world) {
  using cuts = std::vector<std::uint32_t>;
  for (const auto& held : {cuts{0, 3, 6}, cuts{3, 8}, cuts{1, 2, 5, 7}, cuts{0, 4, 4, 8}, cuts{2, 3, 8, 8}})
    for (const std::size_t elements : {1U, 33U, 5003U, 50'003U})
      for (const auto wire : {element_type::float32, element_type::bfloat16}) {
        auto shape = shape_of(static_cast<std::uint32_t>(held.size()) - 1, 8, elements);
        shape.cuts = held;
        shape.wire = wire;
        shape.wire_elements = wire == element_type::float32 ? 0 : elements / 16 * 16;
        nodes_are_canonical(world, shape, 4);
      }
}

// CO-1 of rounded sums: every node of the tree is rounded, whoever owns it, and what travels packed loses
// nothing. `sizes`: elements, of which the last 16 are not rounded.
inline void holds_rounded(worlds::world& world, std::initializer_list<std::size_t> sizes) {
  for (const auto wire : {element_type::float16, element_type::bfloat16})
    for (const auto elements : sizes)
      for (std::uint32_t ranks = 1; ranks <= 4; ++ranks)
        for (const std::uint32_t shards : {1U, 7U, 8U}) {
          auto shape = shape_of(ranks, shards, elements);
          shape.wire = wire;
          shape.wire_elements = (elements - 16) / 16 * 16;
          parts_change_nothing(world, shape, 5);
        }
}

} // namespace troupe::contract
