#include "runtime/policy/rank_order.hpp"

#include <string_view>
#include <vector>

#include <catch2/catch_test_macros.hpp>

namespace troupe {
namespace {

using ranks = std::vector<placed_rank>;

ranks order(const std::vector<std::string_view>& machines, std::string_view director) {
  return order_ranks(machines, director);
}

TEST_CASE("rank order: as the slots, where all are on one machine (RO-1)") {
  CHECK(order({"a", "a", "a"}, "a") == ranks{{0, 0}, {1, 0}, {2, 0}});
  CHECK(order({"", ""}, "") == ranks{{0, 0}, {1, 0}});
  CHECK(order({}, "a").empty());
}

TEST_CASE("rank order: the director's machine first, then those with more members (RO-1, RO-2)") {
  CHECK(order({"a", "b", "a", "b"}, "a") == ranks{{0, 0}, {2, 0}, {1, 1}, {3, 1}});
  CHECK(order({"c", "b", "b", "a"}, "a") == ranks{{3, 0}, {1, 1}, {2, 1}, {0, 2}});
  CHECK(order({"c", "b", "d"}, "a") == ranks{{0, 1}, {1, 2}, {2, 3}}); // alike: by slot; nobody is at home
}

} // namespace
} // namespace troupe
