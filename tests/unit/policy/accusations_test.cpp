#include "runtime/policy/accusations.hpp"

#include <catch2/catch_test_macros.hpp>

namespace troupe {
namespace {

TEST_CASE("accusations: who misses most of the others is blamed, whoever told it (AB-1)") {
  accusations told;
  told.add(0, 1);
  told.add(0, 2);
  told.add(2, 0); // the same pair
  CHECK(told.missed(0) == 2);
  CHECK(told.missed(1) == 1);
  CHECK(told.missed(2) == 1);
  CHECK(told.blamed() == 0);
  told.add(3, 1);
  told.add(3, 1); // told again
  told.add(4, 1);
  CHECK(told.missed(1) == 3);
  CHECK(told.blamed() == 1);
}

TEST_CASE("accusations: of two alike the one that accuses nobody is blamed (AB-2)") {
  accusations lower;
  lower.add(2, 0);
  CHECK(lower.blamed() == 0);
  accusations higher;
  higher.add(0, 2);
  CHECK(higher.blamed() == 2);
}

TEST_CASE("accusations: of two that accuse each other the higher slot is blamed (AB-2)") {
  accusations told;
  told.add(2, 1);
  told.add(1, 2);
  CHECK(told.blamed() == 2);
  CHECK(told.slots() == std::set<std::uint32_t>{1, 2});
}

TEST_CASE("accusations: a generation's are forgotten with it") {
  accusations told;
  CHECK(told.empty());
  told.add(0, 1);
  CHECK_FALSE(told.empty());
  told.clear();
  CHECK(told.empty());
  CHECK(told.missed(1) == 0);
}

} // namespace
} // namespace troupe
