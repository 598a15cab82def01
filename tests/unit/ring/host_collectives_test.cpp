// Which collective a generation of real processes gets.
#include "cli/run/host_collectives.hpp"

#include <catch2/catch_test_macros.hpp>

#include "tests/support/manual_executor.hpp"

namespace troupe {
namespace {

collective_shape shape_of(std::uint64_t generation, std::vector<std::uint32_t> hosts) {
  collective_shape shape{.generation = generation_id{generation},
                         .world = static_cast<std::uint32_t>(hosts.size()),
                         .shards = 8,
                         .elements = 100};
  for (std::uint64_t rank = 0; rank < hosts.size(); ++rank)
    shape.members.push_back({incarnation_id{1, rank + 1}, {}, hosts[rank]});
  return shape;
}

struct director {
  std::string kind_of(std::uint64_t generation, const std::vector<std::uint32_t>& hosts) {
    const auto made = all.prepare(shape_of(generation, hosts));
    if (!made) return made.failure().text;
    CHECK(ring_collective::made(*made) == (all.kind() == "ring"));
    CHECK(two_level_collective::made(*made) == (all.kind() == "shm+ring"));
    return all.kind();
  }
  test::manual_executor loop, device, lane;
  host_collectives all{loop, device, lane};
};

} // namespace

TEST_CASE("host collectives: memory where all are on the director's host, else the network") {
  director d;
  CHECK(d.kind_of(1, {0, 0}) == "shm");
  CHECK(d.all.arrivals().size() == 2);
  CHECK(d.kind_of(2, {0, 1}) == "ring");
  CHECK(d.all.arrivals().empty());
  CHECK(d.kind_of(3, {0}) == "shm");
  CHECK(d.kind_of(4, {1}) == "ring");
}

TEST_CASE("host collectives: both, where ranks of one host follow one another; else the network between all "
          "(LP-1)") {
  director d;
  CHECK(d.kind_of(1, {0, 0, 1, 1}) == "shm+ring");
  CHECK(d.all.arrivals().empty());
  CHECK(d.kind_of(2, {0, 0, 1}) == "shm+ring"); // shares of 3, 3 and 2 of 8 shards
  CHECK(d.kind_of(3, {0, 0, 1, 2}) == "shm+ring");
  CHECK(d.kind_of(4, {0, 1, 2, 3}) == "ring");
  CHECK(d.kind_of(5, {1, 1, 1, 1}) == "shm+ring"); // all on one host, which is not the director's
  CHECK(d.kind_of(6, {0, 0, 0, 0}) == "shm");
  CHECK(d.all.why().empty());
  CHECK(d.kind_of(8, {0, 1}) == "ring");
  CHECK(d.all.why() == "no two workers share a host");
  CHECK(d.kind_of(9, {0, 1, 0}) == "ring");
  CHECK(d.all.why() == "workers of one host do not follow one another");
  d.all.choose(choice_of("ring"));
  CHECK(d.kind_of(10, {0, 0, 1, 1}) == "ring");
  CHECK(d.all.why().empty()); // demanded
}

TEST_CASE("host collectives: what is demanded is used; memory that is not shared is refused") {
  director d;
  d.all.choose(choice_of("ring"));
  CHECK(d.kind_of(1, {0, 0}) == "ring");
  d.all.choose(choice_of("shm"));
  CHECK(d.kind_of(2, {0, 0}) == "shm");
  CHECK(d.kind_of(3, {0, 1}) ==
        "--collective shm: rank 1 shares no memory with the director; accepted: auto, ring");
  CHECK(choice_of("auto") == collective_choice::automatic);
}

TEST_CASE("host collectives: a generation over the network ends the waits of the one in memory (CO-2)") {
  director d;
  const auto shape = shape_of(1, {0, 0});
  const auto place = d.all.prepare(shape).value();
  auto connected = d.all.connect(place, shape, rank_id{0});
  const auto member = std::move(connected.value());
  REQUIRE(d.all.prepare(shape_of(2, {0, 1})));
  std::optional<errc> answer;
  member->all_reduce([&](expected<reduction> sum) { answer = sum ? errc::internal : sum.failure().code; });
  CHECK(answer == errc::aborted);
}

TEST_CASE("host collectives: a member goes by the descriptor") {
  director d;
  const auto shape = shape_of(1, {0, 1});
  const auto place = d.all.prepare(shape).value();
  host_collectives member{d.loop, d.device, d.lane};
  member.choose(collective_choice::shm);
  CHECK(member.connect(place, shape, rank_id{1}));
  CHECK_FALSE(member.connect("neither", shape, rank_id{1}));
}

} // namespace troupe
