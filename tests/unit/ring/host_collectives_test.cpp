// Which collective a generation of real processes gets.
#include "cli/run/host_collectives.hpp"

#include <catch2/catch_test_macros.hpp>

#include "tests/support/manual_executor.hpp"

namespace troupe {
namespace {

collective_shape shape_of(std::uint64_t generation, std::vector<bool> same_host) {
  collective_shape shape{.generation = generation_id{generation},
                         .world = static_cast<std::uint32_t>(same_host.size()),
                         .shards = 8,
                         .elements = 100};
  for (std::uint64_t rank = 0; rank < same_host.size(); ++rank)
    shape.members.push_back({incarnation_id{1, rank + 1}, {}, same_host[rank]});
  return shape;
}

struct director {
  std::string kind_of(std::uint64_t generation, const std::vector<bool>& same_host) {
    const auto made = all.prepare(shape_of(generation, same_host));
    if (!made) return made.failure().text;
    CHECK(ring_collective::made(*made) == (all.kind() == "ring"));
    return all.kind();
  }
  test::manual_executor loop, device, lane;
  host_collectives all{loop, device, lane};
};

} // namespace

TEST_CASE("host collectives: memory where all are on the director's host, else the network") {
  director d;
  CHECK(d.kind_of(1, {true, true}) == "shm");
  CHECK(d.all.arrivals().size() == 2);
  CHECK(d.kind_of(2, {true, false}) == "ring");
  CHECK(d.all.arrivals().empty());
  CHECK(d.kind_of(3, {true}) == "shm");
  CHECK(d.kind_of(4, {false}) == "ring");
}

TEST_CASE("host collectives: what is demanded is used; memory that is not shared is refused") {
  director d;
  d.all.choose(choice_of("ring"));
  CHECK(d.kind_of(1, {true, true}) == "ring");
  d.all.choose(choice_of("shm"));
  CHECK(d.kind_of(2, {true, true}) == "shm");
  CHECK(d.kind_of(3, {true, false}) ==
        "--collective shm: rank 1 shares no memory with the director; accepted: auto, ring");
  CHECK(choice_of("auto") == collective_choice::automatic);
}

TEST_CASE("host collectives: a generation over the network ends the waits of the one in memory (CO-2)") {
  director d;
  const auto shape = shape_of(1, {true, true});
  const auto place = d.all.prepare(shape).value();
  auto connected = d.all.connect(place, shape, rank_id{0});
  const auto member = std::move(connected.value());
  REQUIRE(d.all.prepare(shape_of(2, {true, false})));
  std::optional<errc> answer;
  member->all_reduce([&](expected<reduction> sum) { answer = sum ? errc::internal : sum.failure().code; });
  CHECK(answer == errc::aborted);
}

TEST_CASE("host collectives: a member goes by the descriptor") {
  director d;
  const auto shape = shape_of(1, {true, false});
  const auto place = d.all.prepare(shape).value();
  host_collectives member{d.loop, d.device, d.lane};
  member.choose(collective_choice::shm);
  CHECK(member.connect(place, shape, rank_id{1}));
  CHECK_FALSE(member.connect("neither", shape, rank_id{1}));
}

} // namespace troupe
