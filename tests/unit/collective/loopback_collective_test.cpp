#include <optional>

#include <catch2/catch_test_macros.hpp>

#include "tests/support/manual_executor.hpp"
#include "tests/unit/collective/reference.hpp"
#include "transports/loopback/collective/loopback_collective.hpp"

namespace troupe {
namespace {

struct three_ranks {
  collective_shape shape{generation_id{1}, 3, 8, 100};
  loopback_hall hall;
  test::manual_executor device;
  loopback_collective ranks{hall, &device};
  std::string descriptor{ranks.prepare(shape).value()};
  std::vector<std::unique_ptr<communicator>> members;
  std::vector<std::optional<expected<reduction>>> answers{3};

  three_ranks() {
    for (std::uint32_t rank = 0; rank < 3; ++rank)
      members.push_back(std::move(ranks.connect(descriptor, shape, rank_id{rank}).value()));
  }
  void enter(std::uint32_t rank, std::uint64_t step) {
    reference::contribute(*members[rank], shape, rank, reference::shards_at(step, 8, 100));
    members[rank]->all_reduce([this, rank](expected<reduction> done) {
      REQUIRE_FALSE(answers[rank].has_value()); // LC-2
      answers[rank].emplace(std::move(done));
    });
  }
};

TEST_CASE("loopback collective: one thread drives all ranks through an executor (CO-1, CO-4, LC-2)") {
  three_ranks world;
  for (std::uint64_t step = 0; step < 5; ++step) {
    for (const std::uint32_t rank : {2U, 0U, 1U}) {
      world.device.run_all();
      world.enter(rank, step);
    }
    CHECK_FALSE(world.answers[1].has_value()); // never inside the call
    world.device.run_all();
    const auto reference_sum = reference::sum_at(step, 8, 100);
    for (auto& answer : world.answers) {
      REQUIRE(answer.has_value());
      REQUIRE(*answer);
      CHECK(reference::same_bits((*answer)->sum, reference_sum));
      CHECK((*answer)->number == step + 1); // CO-4
      answer.reset();
    }
  }
}

TEST_CASE("loopback collective: an abort completes pending and later calls through the executor (CO-2)") {
  three_ranks world;
  world.enter(0, 0);
  world.enter(1, 0);
  CHECK(world.members[2]->arrivals() == std::vector<std::uint64_t>{1, 1, 0});
  world.members[2]->abort();
  world.enter(2, 0);
  world.device.run_all();
  for (auto& answer : world.answers) {
    REQUIRE(answer.has_value());
    CHECK(answer->failure().code == errc::aborted);
  }
}

TEST_CASE("loopback collective: the next prepare ends the generation before it (CO-3)") {
  three_ranks world;
  world.enter(0, 0);
  auto next = world.shape;
  next.generation = generation_id{2};
  const auto descriptor = world.ranks.prepare(next);
  REQUIRE(descriptor);
  world.device.run_all();
  REQUIRE(world.answers[0].has_value());
  CHECK(world.answers[0]->failure().code == errc::aborted);
  CHECK(world.ranks.connect(world.descriptor, world.shape, rank_id{0}).failure().code == errc::aborted);
  CHECK(world.ranks.connect(*descriptor, world.shape, rank_id{0}).failure().code == errc::bad_argument);
  CHECK(world.ranks.connect("loopback:x", next, rank_id{0}).failure().code == errc::bad_argument);
  CHECK(world.ranks.connect(*descriptor, next, rank_id{3}).failure().code == errc::bad_argument);
  auto connected = world.ranks.connect(*descriptor, next, rank_id{0});
  REQUIRE(connected);
  CHECK(world.ranks.connect(*descriptor, next, rank_id{0}).failure().code == errc::bad_argument);
}

} // namespace
} // namespace troupe
