// Rank groups over NCCL, against a FAKE of it in virtual time.
#include <catch2/catch_test_macros.hpp>

#include "tests/unit/collective/group_misfits.hpp"
#include "tests/unit/nccl/fake_groups.hpp"

namespace troupe {
namespace {

TEST_CASE("nccl group: the contract of rank groups holds over a FAKE of NCCL (GR-1 to GR-6, NG-1 to NG-3)") {
  fake::fake_group_world world{1};
  group_contract::holds_over(world);
}

} // namespace
} // namespace troupe
