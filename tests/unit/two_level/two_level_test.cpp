// Two levels on one thread: every order of events that a seed draws, also the level inside coming late.
#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include "tests/support/drawn_order.hpp"
#include "tests/unit/collective/reference.hpp"
#include "tests/unit/collective/whole_sum.hpp"
#include "transports/loopback/collective/loopback_collective.hpp"
#include "transports/loopback/loopback_transport.hpp"
#include "transports/ring/ring_collective.hpp"
#include "transports/two_level/two_level_collective.hpp"

namespace troupe {
namespace {

class level_table {
public:
  struct seat {
    seat(executor& loop, loopback_hall& hall, std::unique_ptr<transport> end, ring_settings settings)
        : network{std::move(end)}
        , inside{hall, &device}
        , between{loop, device, settings, &lane}
        , levels{loop, device, inside, between} {
      levels.attach(network.get());
    }
    test::manual_executor device, lane;
    std::unique_ptr<transport> network;
    loopback_collective inside;
    ring_collective between;
    two_level_collective levels;
    std::unique_ptr<communicator> member;
    std::optional<expected<reduction>> answer; // of the newest all-reduce
  };

  level_table(std::vector<std::uint32_t> hosts, std::uint64_t seed, ring_settings settings)
      : order_{seed}
      , hosts_{std::move(hosts)} {
    order_.add(loop_, 3);
    for (std::uint64_t rank = 0; rank < hosts_.size(); ++rank) {
      auto& at =
          *seats_.emplace_back(std::make_unique<seat>(loop_, hall_, hub_.open({1, rank + 1}), settings));
      order_.add(at.device);
      order_.add(at.lane);
    }
  }
  ~level_table() {
    for (auto& at : seats_)
      at->member.reset();
    run();
    for (auto& at : seats_)
      at->levels.attach(nullptr);
  }
  [[nodiscard]] seat& operator[](std::uint32_t rank) { return *seats_[rank]; }
  [[nodiscard]] std::uint32_t world() const { return static_cast<std::uint32_t>(seats_.size()); }
  [[nodiscard]] collective_shape shape(std::uint64_t generation, std::uint32_t shards, std::size_t elements) {
    collective_shape made{generation_id{generation}, world(), shards, elements};
    for (std::uint32_t rank = 0; rank < world(); ++rank)
      made.members.push_back(
          {seats_[rank]->network->self(), seats_[rank]->network->local_address(), hosts_[rank]});
    return made;
  }
  void connect(const collective_shape& shape, std::uint32_t rank) {
    auto& at = *seats_[rank];
    const auto descriptor = seats_[0]->levels.prepare(shape).value();
    at.device.post([&at, &shape, descriptor = std::make_shared<std::string>(descriptor), rank] {
      at.member.reset(); // as a worker: the old one goes when the new one comes
      auto made = at.levels.connect(*descriptor, shape, rank_id{rank});
      at.member = std::move(made.value());
    });
    while (at.device.pending() > 0)
      at.device.run_one();
  }
  void connect_all(const collective_shape& shape) {
    for (std::uint32_t rank = 0; rank < world(); ++rank)
      connect(shape, rank);
  }
  void reduce(std::uint32_t rank) {
    auto& at = *seats_[rank];
    at.answer.reset();
    at.device.post([&at] {
      at.member->all_reduce([&at](expected<reduction> result) { at.answer = std::move(result); });
    });
  }
  bool run_one() { return order_.run_one(); }
  std::size_t run(std::size_t tasks_max = test::drawn_order::all) { return order_.run(tasks_max); }

private:
  test::drawn_order order_;
  std::vector<std::uint32_t> hosts_; // by rank
  test::manual_executor loop_{1U << 14U};
  loopback_hall hall_;
  loopback_hub hub_{loop_, {.bulk_piece_bytes = 256}};
  std::vector<std::unique_ptr<seat>> seats_;
};

struct layout {
  std::vector<std::uint32_t> hosts; // by rank
  std::uint32_t shards;
};
const std::vector<layout> layouts{{{0, 0, 1, 1}, 8},
                                  {{0, 0, 1, 1}, 7},
                                  {{0, 0, 2, 1}, 8},
                                  {{0, 0, 1}, 3},
                                  {{5, 5, 5}, 8},
                                  {{3, 3, 3, 3, 7}, 5},
                                  {{0, 0, 1, 1, 2, 2}, 8},
                                  // Hosts of several nodes.
                                  {{0, 0, 1}, 8},
                                  {{0, 0, 0, 1}, 8},
                                  {{0, 1, 1}, 8},
                                  {{0, 1, 1, 2}, 8},
                                  {{0, 0, 0, 4, 4, 4, 4}, 21}};
const ring_settings ways[]{{}, {.way = ring_way::slices, .piece_bytes = 64}};

// A sum of `step` from every rank, answered or not, of contributions and parts that the seed draws.
void call_all(level_table& table, const collective_shape& shape, std::uint64_t step) {
  const auto shards = reference::shards_at(step, shape.shards, shape.elements);
  for (std::uint32_t rank = 0; rank < shape.world; ++rank) {
    const auto own =
        std::make_shared<std::vector<reference::buffer>>(reference::contributions_of(shape, rank, shards));
    auto& at = table[rank];
    for (const auto part : reference::parts_at(step, shape.elements))
      at.device.post([&at, own, part] {
        for (std::size_t i = 0; i < own->size(); ++i)
          std::copy((*own)[i].begin() + static_cast<std::ptrdiff_t>(part.begin),
                    (*own)[i].begin() + static_cast<std::ptrdiff_t>(part.end),
                    at.member->contribution(i).begin() + static_cast<std::ptrdiff_t>(part.begin));
        at.member->begin(part, {});
      });
    at.device.post([&at, own] {
      for (std::size_t i = 0; i < own->size(); ++i)
        std::ranges::copy((*own)[i], at.member->contribution(i).begin());
    });
    table.reduce(rank);
  }
}

void sums_hold(level_table& table, const collective_shape& shape, std::uint64_t steps) {
  for (std::uint64_t step = 1; step <= steps; ++step) {
    call_all(table, shape, step);
    table.run();
    test::all_have(table, shape, step, reference::sum_at(step, shape.shards, shape.elements));
  }
}

TEST_CASE("two levels: the canonical bits, in any order of events (CO-1, CO-4, LM-1, LM-3)") {
  for (const auto& where : layouts)
    for (const auto& settings : ways)
      for (const std::size_t elements : {1U, 17U, 501U})
        for (std::uint64_t seed = 0; seed < 8; ++seed) {
          CAPTURE(where.hosts, where.shards, elements, seed);
          level_table table{where.hosts, seed, settings};
          const auto shape = table.shape(1, where.shards, elements);
          table.connect_all(shape);
          sums_hold(table, shape, 3);
        }
}

TEST_CASE(
    "two levels: an abort after any number of events answers all; the next generation is whole (CO-2)") {
  for (const auto& where : layouts)
    for (std::uint64_t seed = 0; seed < 60; ++seed) {
      CAPTURE(where.hosts, where.shards, seed);
      level_table table{where.hosts, seed, ways[seed % 2]};
      const auto first = table.shape(1, where.shards, 101);
      table.connect_all(first);
      call_all(table, first, 1);
      table.run(seed * 7);
      const auto who = static_cast<std::uint32_t>(seed % table.world());
      table[who].member->abort();
      table.run();
      for (std::uint32_t rank = 0; rank < table.world(); ++rank) {
        REQUIRE(table[rank].answer.has_value());
        if (!*table[rank].answer) CHECK(table[rank].answer->failure().code == errc::aborted);
        table.reduce(rank); // and no sum can be had any more
      }
      table.run();
      for (std::uint32_t rank = 0; rank < table.world(); ++rank) {
        REQUIRE(table[rank].answer.has_value());
        REQUIRE_FALSE(table[rank].answer->has_value());
        CHECK(table[rank].answer->failure().code == errc::aborted);
      }
      const auto second = table.shape(2, where.shards, 101);
      table.connect_all(second);
      sums_hold(table, second, 2);
    }
}

TEST_CASE("two levels: whoever hears of a generation before it is connected keeps it (LH-2)") {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    level_table table{{0, 0, 1, 1}, seed, {}};
    const auto shape = table.shape(1, 8, 100);
    for (const std::uint32_t rank : {0U, 2U, 3U, 1U}) {
      table.connect(shape, rank);
      table.run(); // what it says is heard before the next one is there
    }
    sums_hold(table, shape, 2);
    const auto second = table.shape(2, 8, 100); // a member that never comes, of a generation that ends
    table.connect(second, 0);
    table.connect(second, 1);
    table.reduce(0);
    table.reduce(1);
    table.run();
    CHECK_FALSE(table[0].answer.has_value());
    table[1].member->abort();
    table.run();
    CHECK(table[0].answer->failure().code == errc::aborted);
    CHECK(table[1].answer->failure().code == errc::aborted);
    const auto third = table.shape(3, 8, 100);
    table.connect_all(third);
    sums_hold(table, third, 2);
  }
}

TEST_CASE("two levels: a level inside that cannot be joined ends the generation with its error") {
  level_table table{{0, 0, 1, 1}, 3, {}};
  const auto shape = table.shape(1, 8, 100);
  table.connect_all(shape);
  (void)table[0].inside.prepare(shape); // the place that was told is gone
  call_all(table, shape, 1);
  table.run();
  for (std::uint32_t rank = 0; rank < 4; ++rank) {
    REQUIRE(table[rank].answer.has_value());
    CHECK_FALSE(table[rank].answer->has_value());
  }
}

TEST_CASE("two levels: who has the plan prepares by it; the place is the same (LP-1)") {
  for (const auto& hosts : std::vector<std::vector<std::uint32_t>>{{0, 0, 1, 1}, {0, 0, 1}, {0, 1, 1, 2}}) {
    level_table table{hosts, 1, {}};
    const auto shape = table.shape(1, 8, 100);
    const auto plan = level_plan::make(shape);
    REQUIRE(plan);
    auto& any = table[0].levels;
    const auto by_plan = any.prepare(shape, *plan);
    REQUIRE(by_plan);
    CHECK(*by_plan == any.prepare(shape).value());
    CHECK(any.connect(*by_plan, shape, rank_id{0}));
  }
}

TEST_CASE("two levels: what does not fit is refused") {
  level_table table{{0, 0, 1, 1}, 1, {}};
  const auto shape = table.shape(1, 8, 100);
  auto& any = table[0].levels;
  const auto good = any.prepare(shape).value();
  CHECK(two_level_collective::made(good));
  CHECK_FALSE(two_level_collective::made(table[0].between.prepare(shape).value()));
  for (const auto* wrong : {"levels:", "levels:1:2*2", "levels:1:2*2:", "levels:1:2,1:ring:1:slices:64",
                            "levels:2:2*2:ring:1:slices:64", "levels:1:1,4:ring:1:slices:64"})
    CHECK_FALSE(any.connect(wrong, shape, rank_id{0}));
  CHECK_FALSE(any.connect(good, shape, rank_id{4}));
  CHECK_FALSE(any.connect(good, table.shape(2, 8, 100), rank_id{0}));
  auto grouped = shape;
  grouped.group_bytes = 4096;
  CHECK_FALSE(any.connect(good, grouped, rank_id{0}));
  const auto refused = any.prepare(grouped);
  REQUIRE_FALSE(refused);
  CHECK(refused.failure().code == errc::bad_argument);
}

TEST_CASE("two levels: messages that are not whole are dropped (LH-1)") {
  const level_frame said{level_word::ended, 7, 3, 2, {}};
  const auto bytes = encode(said);
  const auto again = decode_level_frame(bytes);
  REQUIRE(again);
  CHECK(again->what == said.what);
  CHECK(again->generation == 7);
  CHECK(again->called == 3);
  CHECK(again->rank == 2);
  for (std::size_t size = 0; size < bytes.size(); ++size)
    CHECK_FALSE(decode_level_frame(std::span{bytes}.first(size)));
  CHECK_FALSE(decode_level_frame(encode({level_word::here, 1, 0, 0, std::string(1000, 'x')})));
  CHECK_FALSE(decode_level_frame(encode({static_cast<level_word>(9), 1, 0, 0, {}})));

  level_table table{{0, 0, 1, 1}, 1, {}};
  const auto shape = table.shape(1, 8, 100);
  table.connect_all(shape);
  table.run();
  // From nobody that this rank has a path to, or of another rank than there are.
  (void)table[1].network->connect(shape.members[3].incarnation, shape.members[3].address);
  (void)table[1].network->send(shape.members[3].incarnation, encode({level_word::ended, 1, 0, 1, {}}));
  (void)table[0].network->send(shape.members[1].incarnation, encode({level_word::ended, 1, 0, 99, {}}));
  table.run();
  sums_hold(table, shape, 2);
}

} // namespace
} // namespace troupe
