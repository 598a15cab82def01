#include <catch2/catch_test_macros.hpp>

#include "tests/unit/collective/collective_contract.hpp"
#include "tests/unit/collective/group_misfits.hpp"
#include "tests/unit/ring/ring_worlds.hpp"

namespace troupe {
namespace {

TEST_CASE("ring: the contract of the collective holds between threads (CO-1, CO-2)") {
  contract::holds_over(*worlds::ring_threads({}));
  contract::holds_over(*worlds::ring_threads({.way = ring_way::slices, .piece_bytes = 4096}));
  contract::holds_over(
      *worlds::ring_threads({.way = ring_way::slices, .piece_bytes = 4096, .loop_bytes = 0}));
}

TEST_CASE("ring: rounded sums travel packed, and are canonical (CO-1, CS-2, WF-2)") {
  contract::holds_rounded(*worlds::ring_threads({}), {16, 1000, 4096, 20'003});
  contract::holds_rounded(*worlds::ring_threads({.way = ring_way::slices, .piece_bytes = 4096}),
                          {16, 20'003});
}

TEST_CASE("ring: five ranks, and sums of many pieces, between threads (CO-1)") {
  const auto world = worlds::ring_threads({.way = ring_way::slices, .piece_bytes = 64 * 1024});
  contract::sums_are_canonical(*world, contract::shape_of(5, 8, 600'001), 3);
  contract::sums_are_canonical(*world, contract::shape_of(5, 4, 600'001), 3);
  contract::sums_are_canonical(*world, contract::shape_of(2, 8, 1'000'000), 3);
}

TEST_CASE("ring: sums in parts, between threads (CO-5)") {
  contract::holds_in_parts(*worlds::ring_threads({.way = ring_way::slices, .piece_bytes = 4096}));
  contract::holds_over(
      *worlds::ring_threads({.way = ring_way::slices, .piece_bytes = 4096, .loop_bytes = 0}));
  contract::holds_in_parts(*worlds::ring_threads({}));
}

TEST_CASE("ring: the contract of rank groups holds between threads (GR-1 to GR-6)") {
  group_contract::holds_over(*group_worlds::blocking(worlds::ring_threads({})));
}

} // namespace
} // namespace troupe
