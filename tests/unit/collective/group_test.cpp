#include <catch2/catch_test_macros.hpp>

#include "tests/unit/collective/group_misfits.hpp"

namespace troupe {
namespace {

void strike_busy_runs(worlds::world& world) {
  for (const std::uint64_t calls : {0U, 1U, 20U, 133U})
    for (const std::size_t elements : {33U, 6001U}) // reduced by everybody, and in slices
      group_contract::an_abort_splits_nobody(world, group_contract::shape_of(3, 8192), elements, calls);
}

TEST_CASE("rank group: the contract holds over loopback threads (GR-1 to GR-6)") {
  group_contract::holds_over(*group_worlds::blocking(worlds::loopback_threads()));
  strike_busy_runs(*worlds::loopback_threads());
}

TEST_CASE(
    "rank group: the contract holds over loopback on one thread, where nothing blocks (GR-1 to GR-6, GT-1)") {
  group_contract::holds_over(*group_worlds::loopback_executor());
}

TEST_CASE("rank group: the contract holds in simulation (GR-1 to GR-6)") {
  for (const std::uint64_t seed : {1U, 2U})
    group_contract::holds_over(*group_worlds::simulated(seed));
}

TEST_CASE("rank group: the contract holds over shm threads (GR-1 to GR-6)") {
  group_contract::holds_over(*group_worlds::blocking(worlds::shm_threads(1)));
  strike_busy_runs(*worlds::shm_threads(1));
}

TEST_CASE("rank group: the contract holds over shm members in one mapping (GR-1 to GR-6, SR-1)") {
  group_contract::holds_over(*group_worlds::blocking(worlds::shm_one_mapping(4)));
  strike_busy_runs(*worlds::shm_one_mapping(4));
}

} // namespace
} // namespace troupe
