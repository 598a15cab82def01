#include <algorithm>
#include <memory>
#include <string>

#include <catch2/catch_test_macros.hpp>

#include "tests/unit/collective/collective_contract.hpp"
#include "tests/unit/collective/whole_sum.hpp"
#include "tests/unit/ring/ring_table.hpp"

namespace troupe {
namespace {

using test::ring_table;

constexpr std::size_t small_pieces = 64; // bytes: many of them in small slices

ring_settings small(ring_way way, bool on_lane) {
  return {.way = way, .piece_bytes = small_pieces, .loop_bytes = on_lane ? 0 : limits::ring_loop_bytes};
}

const auto ways = {ring_way::exchange, ring_way::doubling, ring_way::slices};

// Steps `first` .. `last` of a generation that is connected: on every rank the reference's bits, numbered.
void sums_hold(ring_table& table, const collective_shape& shape, std::uint64_t steps) {
  for (std::uint64_t step = 1; step <= steps; ++step) {
    const auto shards = reference::shards_at(step, shape.shards, shape.elements);
    const auto sum = reference::tree_sum(shards, 0, shape.shards);
    for (std::uint32_t rank = 0; rank < shape.world; ++rank) {
      reference::contribute(*table[rank].member, shape, rank, shards);
      table.reduce(rank);
    }
    table.run();
    test::all_have(table, shape, step, sum);
  }
}

// After an abort: sums are right again, and nothing is lent to the transport any more (RM-4).
void next_generation_is_whole(ring_table& table, const collective_shape& shape) {
  table.connect_all(shape);
  sums_hold(table, shape, 2);
  for (std::uint32_t rank = 0; rank < shape.world; ++rank)
    CHECK(table[rank].ring->hub().members() == 1);
}

// Everybody has been answered, by a sum or by the abort.
void all_answered(ring_table& table) {
  for (std::uint32_t rank = 0; rank < table.world(); ++rank) {
    REQUIRE(table[rank].answer.has_value());
    if (!*table[rank].answer) CHECK(table[rank].answer->failure().code == errc::aborted);
  }
}

TEST_CASE("ring: every way gives the canonical bits, in any order of events (CO-1, CO-4, RM-2)") {
  for (const auto way : ways)
    for (std::uint32_t world = 1; world <= 5; ++world)
      for (const std::uint32_t shards : {1U, 5U, 8U, 16U})
        for (const std::size_t elements : {1U, 3U, 17U, 100U, 501U}) {
          ring_table table{world, elements + world, small(way, world % 2 == 0)};
          const auto shape = table.shape(1, shards, elements);
          if (world > 1 && !possible(way, shape)) continue;
          CAPTURE(to_string(way), world, shards, elements);
          table.connect_all(shape);
          sums_hold(table, shape, 3);
        }
}

// Two sums of what the shape's wire makes of the shards.
void packed_sums_hold(ring_table& table, const collective_shape& shape) {
  const reference::steps known{2, shape};
  for (std::size_t step = 0; step < 2; ++step) {
    for (std::uint32_t rank = 0; rank < shape.world; ++rank) {
      const auto own = reference::contributions_of(shape, rank, known.shards[step]);
      for (std::size_t i = 0; i < own.size(); ++i)
        std::ranges::copy(own[i], table[rank].member->contribution(i).begin());
      table.reduce(rank);
    }
    table.run();
    for (std::uint32_t rank = 0; rank < shape.world; ++rank)
      REQUIRE(reference::same_bits((*table[rank].answer)->sum, known.sums[step]));
  }
}

// Two sums of a shape on one way; the bytes of values that rank 0 sends for one. 0: the way is impossible.
std::uint64_t bytes_a_sum(ring_way way, std::uint32_t world, std::size_t elements, std::size_t kept) {
  ring_table table{world, world, {.way = way, .piece_bytes = 4096}};
  auto shape = table.shape(1, 8, elements);
  shape.wire_elements = elements - 16;
  shape.kept = kept;
  if (!possible(way, shape)) return 0;
  CAPTURE(to_string(way), world, kept);
  table.connect_all(shape);
  packed_sums_hold(table, shape);
  return table[0].ring->hub().counters().value_bytes / 2;
}

TEST_CASE(
    "ring: a sum of few entries has the reference's bits on every way, and takes few bytes (CO-1, EL-1)") {
  constexpr std::size_t elements = 10'016;
  for (const auto way : ways)
    for (const std::uint32_t world : {2U, 3U, 4U}) {
      const auto whole = bytes_a_sum(way, world, elements, 0);
      const auto twentieth = bytes_a_sum(way, world, elements, 500);
      const auto hundredth = bytes_a_sum(way, world, elements, 100);
      if (whole == 0) continue;
      UNSCOPED_INFO("rank 0 of " << world << " sends " << whole << ", " << twentieth << ", " << hundredth
                                 << " bytes a sum by " << to_string(way));
      CHECK(double(twentieth) / double(whole) < 0.4); // up to 8 shards' entries in a finished slice
      CHECK(double(hundredth) / double(whole) < 0.12);
    }
}

TEST_CASE(
    "ring: a rounded sum has the reference's bits on every way, and takes half the bytes (CS-2, WF-2)") {
  constexpr std::size_t elements = 10'016; // the last 16 are not rounded
  for (const auto way : ways)
    for (const std::uint32_t world : {2U, 3U, 4U}) {
      std::uint64_t bytes[3]{};
      for (const auto wire : {element_type::float32, element_type::float16, element_type::bfloat16}) {
        ring_table table{world, world, {.way = way, .piece_bytes = 4096}};
        auto shape = table.shape(1, 8, elements);
        shape.wire = wire;
        shape.wire_elements = elements - 16;
        if (!possible(way, shape)) continue;
        CAPTURE(to_string(way), world, static_cast<int>(wire));
        table.connect_all(shape);
        packed_sums_hold(table, shape);
        bytes[wire == element_type::float32   ? 0
              : wire == element_type::float16 ? 1
                                              : 2] = table[0].ring->hub().counters().value_bytes / 2;
      }
      if (bytes[0] == 0) continue;
      UNSCOPED_INFO("rank 0 of " << world << " sends " << bytes[0] << ", " << bytes[1] << ", " << bytes[2]
                                 << " bytes a sum by " << to_string(way));
      CHECK(bytes[1] == bytes[2]);
      CHECK(double(bytes[1]) / double(bytes[0]) < 0.502);
    }
}

TEST_CASE("ring: doubling in a world of eight is the canonical tree (RP-3, RD-1)") {
  for (const std::uint32_t shards : {8U, 16U, 64U}) {
    ring_table table{8, shards, {.way = ring_way::doubling}};
    const auto shape = table.shape(1, shards, 33);
    table.connect_all(shape);
    sums_hold(table, shape, 20);
  }
}

// Every rank begins `parts` one after the other, as tasks of its device, and then the rest.
void begin_parts(ring_table& table, const collective_shape& shape, std::uint64_t step, std::uint64_t seed) {
  for (std::uint32_t rank = 0; rank < shape.world; ++rank) {
    auto& at = table[rank];
    const auto ready = std::make_shared<std::vector<reference::buffer>>(
        reference::contributions_of(shape, rank, reference::shards_at(step, shape.shards, shape.elements)));
    const auto parts =
        std::make_shared<std::vector<element_range>>(reference::parts_at(seed, shape.elements));
    for (std::size_t i = 0; i < parts->size(); ++i)
      at.device->post([&at, ready, parts, i] {
        contract::write_part(*at.member, *ready, (*parts)[i]);
        at.member->begin((*parts)[i], {});
      });
    at.device->post([&at, ready, parts, elements = shape.elements] {
      contract::write_rest(*at.member, *ready, *parts, elements);
    });
    table.reduce(rank);
  }
}

TEST_CASE("ring: sums in parts have the canonical bits, in any order of events (CO-5)") {
  for (const auto way : ways)
    for (std::uint32_t world = 1; world <= 4; ++world)
      for (const std::size_t elements : {17U, 501U})
        for (std::uint64_t seed = 0; seed < 6; ++seed) {
          ring_table table{world, seed, small(way, seed % 2 == 0)};
          const auto shape = table.shape(1, 8, elements);
          if (world > 1 && !possible(way, shape)) continue;
          CAPTURE(to_string(way), world, elements, seed);
          table.connect_all(shape);
          for (std::uint64_t step = 1; step <= 4; ++step) {
            begin_parts(table, shape, step, seed + step);
            table.run();
            const auto sum =
                reference::tree_sum(reference::shards_at(step, shape.shards, elements), 0, shape.shards);
            for (std::uint32_t rank = 0; rank < world; ++rank) {
              REQUIRE((table[rank].answer && *table[rank].answer));
              CHECK((*table[rank].answer)->number == step);
              REQUIRE(reference::same_bits((*table[rank].answer)->sum, sum));
            }
          }
        }
}

TEST_CASE("ring: an abort at any moment of a sum in parts frees everybody (CO-2, CO-5, RM-4)") {
  std::size_t stage = 0;
  for (bool finished = false; !finished; stage += 3) {
    CAPTURE(stage);
    ring_table table{3, stage, small(ring_way::slices, stage % 2 == 0)};
    const auto shape = table.shape(1, 8, 300);
    table.connect_all(shape);
    begin_parts(table, shape, 1, stage % 6);
    table.run(stage);
    finished = table[0].answer && table[1].answer && table[2].answer;
    table[1].member->abort();
    table.run();
    all_answered(table);
    next_generation_is_whole(table, table.shape(2, 8, 300));
  }
  CHECK(stage > 20);
}

TEST_CASE("ring: ranks that run ahead are waited for, a thousand sums long (RM-2, RX-1, RD-2, RS-1, RS-2)") {
  for (const auto way : ways) {
    ring_table table{4, 7, small(way, false)};
    const auto shape = table.shape(1, 4, 40);
    table.connect_all(shape);
    const auto shards = reference::shards_at(1, shape.shards, shape.elements);
    const auto sum = reference::tree_sum(shards, 0, shape.shards);
    std::vector<std::uint64_t> made(4);
    for (std::uint32_t rank = 0; rank < 4; ++rank) {
      reference::contribute(*table[rank].member, shape, rank, shards);
      table.reduce(rank);
    }
    while (std::ranges::min(made) < 1000) { // each calls again as soon as it is answered
      REQUIRE(table.run_one());
      for (std::uint32_t rank = 0; rank < 4; ++rank) {
        if (!table[rank].answer || made[rank] == 1000) continue;
        REQUIRE(table[rank].answer->has_value());
        REQUIRE((*table[rank].answer)->number == ++made[rank]);
        REQUIRE(reference::same_bits((*table[rank].answer)->sum, sum));
        if (made[rank] < 1000)
          table.reduce(rank);
        else
          table[rank].answer.reset();
      }
    }
  }
}

TEST_CASE(
    "ring: an abort at any moment frees everybody, and the next generation is whole (CO-2, CO-3, RM-4)") {
  for (const auto way : ways) {
    std::size_t stage = 0;
    for (bool finished = false; !finished; stage += 3) {
      CAPTURE(to_string(way), stage);
      ring_table table{4, stage, small(way, stage % 2 == 0)};
      const auto shape = table.shape(1, 4, 100);
      table.connect_all(shape);
      table.reduce_all();
      table.run(stage);
      finished = std::ranges::all_of(std::vector{0U, 1U, 2U, 3U},
                                     [&](auto rank) { return table[rank].answer.has_value(); });
      table[1].member->abort();
      table[1].member->abort(); // idempotent
      table.run();
      all_answered(table);
      table.reduce_all(); // later ones end likewise
      table.run();
      for (std::uint32_t rank = 0; rank < 4; ++rank)
        CHECK(table[rank].answer->failure().code == errc::aborted);
      next_generation_is_whole(table, table.shape(2, 4, 100));
    }
    CHECK(stage > 20);
  }
}

TEST_CASE("ring: a member of an ended generation reaches nobody of the new one (CO-3, RH-1)") {
  for (const auto way : ways) {
    ring_table table{4, 3, small(way, true)};
    const auto old = table.shape(1, 4, 100);
    table.connect_all(old);
    table.run();
    // Rank 3 knows of no end: it calls, while the others are two generations on without it.
    const auto next = table.shape(2, 4, 100, 2);
    table.connect(next, 0);
    table.connect(next, 1);
    table.reduce(3);
    sums_hold(table, next, 3);
    CHECK_FALSE(table[3].answer.has_value());
    table[3].member->abort();
    table.run();
    CHECK(table[3].answer->failure().code == errc::aborted);
    sums_hold(table, next, 0);
  }
}

TEST_CASE("ring: who connects first is heard by those who come later (RM-1, RH-2)") {
  for (const auto way : ways)
    for (std::uint32_t last = 0; last < 4; ++last) {
      ring_table table{4, last, small(way, last % 2 == 0)};
      const auto shape = table.shape(5, 4, 100);
      for (std::uint32_t rank = 0; rank < 4; ++rank)
        if (rank != last) table.connect(shape, rank);
      for (std::uint32_t rank = 0; rank < 4; ++rank)
        if (rank != last) table.reduce(rank);
      table.run();
      for (std::uint32_t rank = 0; rank < 4; ++rank)
        CHECK_FALSE(table[rank].answer.has_value());
      table.connect(shape, last);
      table.reduce(last);
      table.run();
      for (std::uint32_t rank = 0; rank < 4; ++rank)
        CHECK(table[rank].answer->has_value());
    }
}

TEST_CASE("ring: who aborted before another connects is heard, too (CO-2)") {
  ring_table table{3, 1, {}};
  const auto shape = table.shape(1, 8, 10);
  table.connect(shape, 0);
  table.connect(shape, 1);
  table.run();
  table[0].member->abort();
  table.run();
  table.connect(shape, 2);
  table.reduce(2);
  table.run();
  CHECK(table[2].answer->failure().code == errc::aborted);
}

TEST_CASE("ring: the rank that is behind is the one that has not called") {
  for (const auto way : {ring_way::exchange, ring_way::slices}) {
    ring_table table{3, 2, small(way, true)};
    const auto shape = table.shape(1, 8, 100);
    table.connect_all(shape);
    table.reduce(0);
    table.reduce(2);
    table.run();
    for (std::uint32_t rank = 0; rank < 3; ++rank)
      CHECK(table[rank].member->arrivals() == std::vector<std::uint64_t>{1, 0, 1});
  }
}

TEST_CASE("ring: a lost path is silence until the abort (CO-2)") {
  for (const auto way : ways) {
    ring_table table{4, 9, small(way, false)};
    const auto shape = table.shape(1, 4, 100);
    table.connect_all(shape);
    table.reduce_all();
    table.run(30);
    table[2].network->drop({1, 2}); // rank 1
    table.run();
    if (table[1].answer && table[2].answer) continue; // it was over before
    table[0].member->abort();
    table[1].member->abort();
    table[2].member->abort();
    table.run();
    for (std::uint32_t rank = 0; rank < 4; ++rank)
      CHECK(table[rank].answer.has_value());
  }
}

TEST_CASE("ring: shapes and descriptors that cannot work are refused") {
  ring_table table{2, 1, {}};
  auto& ring = *table[0].ring;
  const auto refused = [&](const collective_shape& shape) {
    const auto made = ring.prepare(shape);
    return !made && made.failure().code == errc::bad_argument;
  };
  auto shape = table.shape(1, 8, 10);
  CHECK_FALSE(refused(shape));
  shape.members.pop_back();
  CHECK(refused(shape));
  shape.members.push_back(shape.members.front()); // twice the same
  CHECK(refused(shape));
  CHECK(refused(table.shape(1, 0, 10)));
  CHECK(refused(table.shape(1, 8, 0)));

  const auto good = table.shape(3, 8, 10);
  const auto joins = [&](const std::string& descriptor, std::uint32_t rank) {
    return ring.connect(descriptor, good, rank_id{rank}).has_value();
  };
  CHECK(joins("ring:3:slices:1024", 0));
  for (const auto* wrong : {"", "ring:", "ring:2:slices:1024", "ring:3:slices", "ring:3:alone:1024",
                            "ring:3:slices:100", "ring:3:sideways:1024", "ring:3:slices:1024:1", "shm:3"})
    CHECK_FALSE(joins(wrong, 0));
  CHECK_FALSE(joins("ring:3:slices:1024", 2));
}

TEST_CASE("ring: a rank of this generation that is reached no more is told, others are not (RH-3)") {
  ring_table table{3, 5, {}};
  std::vector<std::pair<std::uint64_t, incarnation_id>> told;
  table[0].ring->set_unreachable_handler(
      [&](generation_id generation, incarnation_id who, const error& cause) {
        CHECK_FALSE(cause.text.empty());
        told.emplace_back(generation.value(), who);
      });
  const auto all = table.shape(1, 8, 20);
  table.connect_all(all);
  sums_hold(table, all, 2);
  const auto two = table.shape(2, 8, 20, 2);
  table.connect(two, 0);
  table.connect(two, 1);
  table.run();
  table[2].ring->attach(nullptr);
  table[2].network.reset(); // no member any more
  table.run();
  CHECK(told.empty());
  table[1].ring->attach(nullptr);
  table[1].network.reset();
  table.run();
  CHECK(told == decltype(told){{2, all.members[1].incarnation}});
  auto third = table.shape(3, 8, 20, 1);
  third.world = 2;
  third.members.push_back({incarnation_id{1, 3}, {}}); // whom nothing leads to
  table.connect(third, 0);
  table.run();
  CHECK(told.back() == std::pair{std::uint64_t{3}, incarnation_id{1, 3}});
}

} // namespace
} // namespace troupe
