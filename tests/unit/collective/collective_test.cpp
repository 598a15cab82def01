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

} // namespace
} // namespace troupe
