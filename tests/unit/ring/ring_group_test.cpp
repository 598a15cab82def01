#include <catch2/catch_test_macros.hpp>

#include "tests/unit/collective/group_misfits.hpp"
#include "tests/unit/ring/ring_table.hpp"

namespace troupe {
namespace {

// All ranks on one thread, in an order drawn from a seed; nothing blocks.
class ring_group_world final : public group_worlds::group_world {
public:
  explicit ring_group_world(std::uint64_t seed)
      : seed_{seed} {}
  [[nodiscard]] std::string name() const override { return "ring, one thread"; }
  [[nodiscard]] std::vector<int> play(const collective_shape& shape,
                                      const group_worlds::part& played) override {
    test::ring_table table{shape.world, seed_++, {}};
    auto known = table.shape(shape.generation.value(), shape.shards, shape.elements);
    known.group_bytes = shape.group_bytes;
    table.connect_all(known);
    std::deque<group_worlds::player> players;
    for (std::uint32_t rank = 0; rank < shape.world; ++rank)
      players.emplace_back(*table[rank].member, rank);
    for (std::uint32_t rank = 0; rank < shape.world; ++rank)
      table[rank].device->post([&, rank] { played.issue(players[rank]); });
    table.run();
    std::vector<int> results;
    for (auto& one : players)
      results.push_back(played.check(one));
    players.clear(); // groups that were split off go before their communicator
    return results;
  }

private:
  std::uint64_t seed_;
};

TEST_CASE("ring group: the contract holds in any order of events (GR-1 to GR-6, RT-1 to RT-3, RG-1)") {
  for (const std::uint64_t seed : {1U, 1000U, 2000U}) {
    ring_group_world world{seed};
    group_contract::holds_over(world);
  }
}

TEST_CASE("ring group: blocks above a message's size travel as transfers (RT-2, RT-3)") {
  ring_group_world world{7};
  for (const std::uint32_t ranks : {2U, 3U})
    group_contract::calls_are_right(world, group_contract::shape_of(ranks, 1024 * 1024), 40'000);
}

// A call of every kind whose blocks are transfers, ended after each number of events.
TEST_CASE("ring group: an abort at any moment ends all calls, and nothing stays lent (GR-2, RM-4)") {
  constexpr std::uint32_t ranks = 3;
  const group_contract::known_values known{ranks, element_type::float32, 20'000};
  std::size_t stage = 0;
  for (bool finished = false; !finished; stage += 7) {
    CAPTURE(stage);
    test::ring_table table{ranks, stage, {}};
    auto shape = table.shape(1, 8, 16);
    shape.group_bytes = 1024 * 1024;
    table.connect_all(shape);
    std::deque<group_worlds::player> players;
    for (std::uint32_t rank = 0; rank < ranks; ++rank) {
      auto& one = players.emplace_back(*table[rank].member, rank);
      table[rank].device->post([&one, &known] {
        group_contract::script calls{one, one.group(), known};
        calls.exchanges();
      });
    }
    table.run(stage);
    table[1].member->abort();
    table.run();
    finished = true;
    for (auto& one : players) {
      REQUIRE(one.all_done_in_order());
      for (const auto& call : one.records()) {
        REQUIRE((call.succeeded() || call.failed_with(errc::aborted)));
        finished = finished && call.succeeded();
      }
    }
    players.clear();
    table.connect_all(table.shape(2, 8, 16));
    table.run();
    for (std::uint32_t rank = 0; rank < ranks; ++rank)
      CHECK(table[rank].ring->hub().members() == 1); // nothing is lent to the transport any more
  }
  CHECK(stage > 100);
}

} // namespace
} // namespace troupe
