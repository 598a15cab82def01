#include <catch2/catch_test_macros.hpp>

#include "tests/unit/collective/collective_contract.hpp"
#include "tests/unit/collective/collective_worlds.hpp"

namespace troupe {
namespace {

TEST_CASE("collective: the contract holds over loopback threads (CO-1, CO-2, LC-1)") {
  contract::holds_over(*worlds::loopback_threads());
}

TEST_CASE("collective: the contract holds over shm threads that pause, yield and sleep (CO-1, CO-2, ME-1)") {
  contract::holds_over(*worlds::shm_threads(1));
  contract::holds_over(*worlds::shm_threads(4));
}

TEST_CASE("collective: the contract holds over shm members in one mapping (CO-1, CO-2, SC-1)") {
  contract::holds_over(*worlds::shm_one_mapping(1));
  contract::holds_over(*worlds::shm_one_mapping(4));
}

TEST_CASE("collective: sums begun in parts are the same sums, and an abort ends all of them (CO-2, CO-5)") {
  contract::holds_in_parts(*worlds::loopback_threads());
  contract::holds_in_parts(*worlds::shm_threads(1));
  contract::holds_in_parts(*worlds::shm_threads(4, true));
  contract::holds_in_parts(*worlds::shm_one_mapping(1, true));
}

TEST_CASE("collective: rounded sums are canonical too (CO-1, CS-2)") {
  contract::holds_rounded(*worlds::loopback_threads(), {16, 1000, 20'003});
  contract::holds_rounded(*worlds::shm_threads(1, true), {16, 1000, 20'003});
}

TEST_CASE("collective: ranks with a part of the shards get the sum of each of its nodes (CO-1, CO-5, CP-3)") {
  contract::holds_for_nodes(*worlds::loopback_threads());
  contract::holds_for_nodes(*worlds::shm_threads(1));
  contract::holds_for_nodes(*worlds::shm_threads(4, true));
}

TEST_CASE("collective: the contract holds over shm threads with lanes (CO-1, CO-2, SC-3)") {
  contract::holds_over(*worlds::shm_threads(1, true));
}

} // namespace
} // namespace troupe
