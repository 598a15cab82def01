#include "runtime/policy/nearest_name.hpp"

#include <array>

#include <catch2/catch_test_macros.hpp>

namespace troupe {
namespace {

constexpr std::array<std::string_view, 4> known{"kill", "segv", "director-kill", "bit-flip"};

TEST_CASE("nearest name: finds a slip, a swap and a missing letter") {
  CHECK(nearest_name("kil", known) == "kill");
  CHECK(nearest_name("sevg", known) == "segv");
  CHECK(nearest_name("directorkill", known) == "director-kill");
  CHECK(nearest_name("bitflip", known) == "bit-flip");
}

TEST_CASE("nearest name: suggests nothing rather than something far") {
  CHECK(nearest_name("explode", known).empty());
  CHECK(nearest_name("", known).empty());
  CHECK(nearest_name(std::string(1000, 'k'), known).empty());
}

} // namespace
} // namespace troupe
