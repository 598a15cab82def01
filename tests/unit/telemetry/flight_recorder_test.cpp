#include <atomic>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <thread>

#include <catch2/catch_test_macros.hpp>

#include "tests/unit/telemetry/flight_fixture.hpp"

namespace troupe {
namespace {

using namespace std::chrono_literals;
using flight::rank;

TEST_CASE("flight ring: keeps the newest calls, oldest first") {
  const auto ring = std::make_unique<flight_ring>();
  CHECK_FALSE(ring->newest());
  flight_record first;
  for (std::uint64_t i = 1; i <= 2500; ++i) {
    flight_record made{.sequence = i};
    ring->add(made);
    CHECK(made.id == i);
    if (i == 1) first = made;
  }
  const auto kept = ring->records();
  REQUIRE(kept.size() == flight_records_max);
  CHECK(kept.front().sequence == 2500 - flight_records_max + 1);
  CHECK(kept.back().sequence == 2500);
  first.outcome = call_outcome::done;
  ring->update(first); // overwritten long ago: nobody else's record is touched
  CHECK(ring->records().front().outcome == call_outcome::pending);
  CHECK(ring->newest()->sequence == 2500);
}

TEST_CASE("flight ring: what is read was written whole, while it is being written (FR-1)") {
  const auto ring = std::make_unique<flight_ring>();
  std::atomic<bool> over{false};
  std::atomic<std::uint64_t> seen{0};
  std::thread reader{[&] {
    while (!over.load()) {
      for (const auto& one : ring->records()) {
        const bool whole = one.step == one.sequence && one.elements == one.sequence &&
                           one.created_ns == static_cast<std::int64_t>(one.sequence);
        if (!whole) seen.store(UINT64_MAX);
        if (seen.load() != UINT64_MAX) seen.fetch_add(1);
      }
    }
  }};
  for (std::uint64_t i = 1; i <= 20'000; ++i) {
    flight_record made{.sequence = i, .step = i, .elements = i, .created_ns = static_cast<std::int64_t>(i)};
    ring->add(made);
    made.outcome = call_outcome::done;
    ring->update(made);
  }
  while (seen.load() == 0)
    std::this_thread::yield();
  over.store(true);
  reader.join();
  CHECK(seen.load() != UINT64_MAX);
}

TEST_CASE("flight ring: records out of range are left out, whoever wrote them (FR-3)") {
  const auto ring = std::make_unique<flight_ring>();
  flight_record wild{.call = static_cast<collective_call>(77)};
  ring->add(wild);
  flight_record good{.sequence = 2};
  ring->add(good);
  const auto kept = ring->records();
  REQUIRE(kept.size() == 1);
  CHECK(kept[0].sequence == 2);
}

TEST_CASE("flight recorder: a sum is in the ring before it is entered, and ends there (FL-1, CO-4)") {
  manual_clock clock;
  rank one{clock, 0, 2, 64};
  one.enter(7);
  auto seen = one.box->flight.newest();
  REQUIRE(seen);
  CHECK(seen->outcome == call_outcome::pending);
  CHECK((seen->sequence == 1 && seen->step == 7 && seen->elements == 64 && seen->finished_ns == 0));
  clock.advance(3ms);
  one.end(1);
  seen = one.box->flight.newest();
  CHECK(seen->outcome == call_outcome::done);
  CHECK(seen->finished_ns - seen->created_ns == duration{3ms}.count());
  one.enter(8);
  one.end(1); // the receipt of the sum before
  CHECK(one.box->flight.newest()->outcome == call_outcome::left_out);
  one.enter(9);
  one.abort();
  CHECK(one.box->flight.newest()->outcome == call_outcome::aborted);
}

TEST_CASE("flight recorder: parts of a sum say when each was begun and done, whoever finds that out (FL-3)") {
  manual_clock clock;
  rank one{clock, 0, 2, 64};
  one.box->step_started = 7;
  for (const auto part : {element_range{48, 64}, {32, 48}, {16, 32}}) {
    one.reduce->begin(part, {});
    clock.advance(2ms);
  }
  std::thread{[&] { one.inner->parts[0](); }}.join(); // 6 ms after it was begun
  clock.advance(1ms);
  one.inner->parts[1]();
  one.enter(7);
  clock.advance(1ms);
  one.end(1);
  const auto records = one.box->flight.records();
  REQUIRE(records.size() == 4);
  const auto ms = [&](std::int64_t ns) { return (ns - records[0].created_ns) / 1'000'000; };
  for (std::size_t i = 0; i < 3; ++i) {
    CHECK((records[i].group == flight_parts_group && records[i].sequence == i + 1));
    CHECK((records[i].elements == 16 && records[i].step == 7 && records[i].finished()));
    CHECK(ms(records[i].created_ns) == static_cast<std::int64_t>(2 * i));
  }
  CHECK((ms(records[0].started_ns) == 0 && ms(records[0].finished_ns) == 6));
  CHECK((ms(records[1].started_ns) == 6 && ms(records[1].finished_ns) == 7)); // after the one before
  CHECK((ms(records[2].started_ns) == 7 && ms(records[2].finished_ns) == 8)); // with its sum
  CHECK(records[3].group == 0);
  CHECK(ms(records[3].created_ns) == 7); // backward's end
  one.reduce->begin({32, 64}, {});
  CHECK(one.box->flight.newest()->sequence == 4);
  one.enter(8);
  one.abort();
  CHECK(one.box->flight.records()[4].outcome == call_outcome::aborted);
}

TEST_CASE("flight recorder: a group's calls end in order, and each kind has numbers of its own (FL-2)") {
  manual_clock clock;
  rank one{clock, 0, 3, 1};
  auto& group = *one.reduce->group();
  int ended = 0;
  const auto call = [&](group_call what, std::uint32_t peer) {
    group.start({.call = what, .elements = 4, .peer = peer}, [&](expected<void>) { ++ended; });
  };
  for (int i = 0; i < 20; ++i) // more than there is room for at first
    call(group_call::all_gather, 0);
  call(group_call::send, 2);
  call(group_call::send, 1);
  call(group_call::send, 2);
  call(group_call::barrier, 0);
  clock.advance(1ms);
  for (int i = 0; i < 24; ++i)
    one.general.end_first();
  CHECK(ended == 24);
  const auto kept = one.box->flight.records();
  REQUIRE(kept.size() == 24);
  CHECK(kept[19].sequence == 20);
  CHECK(kept[19].started_ns > kept[19].created_ns); // those before it were under way
  CHECK((kept[20].sequence == 1 && kept[21].sequence == 1 && kept[22].sequence == 2));
  CHECK((kept[23].sequence == 21 && kept[23].group == 1));
}

TEST_CASE(
    "flight recorder: a call that is refused is told at once, and is no call of the group (FL-2, GR-6)") {
  manual_clock clock;
  rank one{clock, 0, 3, 1};
  auto& group = *one.reduce->group();
  std::vector<int> ended;
  const auto call = [&](int number, group_call what) {
    group.start({.call = what, .elements = 4, .peer = 1}, [&ended, number](const expected<void>& result) {
      ended.push_back(result ? number : -number);
    });
  };
  call(1, group_call::barrier);
  call(2, group_call::send);
  one.general.full = true;
  call(3, group_call::send);
  call(4, group_call::barrier);
  CHECK(ended == std::vector<int>{-3, -4});
  one.general.full = false;
  call(5, group_call::send);
  call(6, group_call::barrier);
  while (!one.general.calls.empty())
    one.general.end_first();
  CHECK(ended == std::vector<int>{-3, -4, 1, 2, 5, 6});
  const auto kept = one.box->flight.records();
  REQUIRE(kept.size() == 6);
  std::vector<std::uint64_t> numbers;
  for (const auto& record : kept) {
    numbers.push_back(record.sequence);
    CHECK(record.outcome == (record.sequence == 0 ? call_outcome::failed : call_outcome::done));
  }
  CHECK(numbers == std::vector<std::uint64_t>{1, 1, 0, 0, 2, 2});
}

TEST_CASE("flight recorder: a split group has one number at all its members, and ranks of the generation") {
  manual_clock clock;
  std::vector<std::unique_ptr<rank>> ranks;
  for (std::uint32_t r = 0; r < 4; ++r)
    ranks.push_back(std::make_unique<rank>(clock, r, 4, 1));
  const std::vector<std::uint32_t> even{0, 2}, odd{1, 3};
  std::vector<std::unique_ptr<rank_group>> made;
  for (auto& one : ranks) {
    for (const auto& members : {even, odd}) {
      auto part = one->reduce->group()->split(members);
      REQUIRE(part);
      if (*part != nullptr) made.push_back(std::move(*part));
    }
  }
  REQUIRE(made.size() == 4);
  made[3]->start({.call = group_call::broadcast, .peer = 0}, [](expected<void>) {});
  CHECK(ranks[3]->box->flight.newest()->peer == 1);
  const auto of_1 = ranks[1]->recorder.groups();
  const auto of_3 = ranks[3]->recorder.groups();
  REQUIRE(of_1.size() == 2);
  CHECK(of_1 == of_3);
  CHECK(of_1[1].ranks == odd);
  CHECK(of_1[1].group != ranks[0]->recorder.groups()[1].group);
}

// build/tests/unit_telemetry "flight recorder: what a call costs"
TEST_CASE("flight recorder: what a call costs", "[.table]") {
  manual_clock clock;
  rank one{clock, 0, 2, 64};
  constexpr std::uint64_t calls = 1'000'000;
  const auto begin = std::clock(); // processor time: other programs do not count
  for (std::uint64_t i = 1; i <= calls; ++i) {
    one.enter(i);
    one.end(i);
  }
  const double took_s = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
  std::printf("%.0f ns a sum, without the two looks at the clock; %zu KiB a rank\n", took_s * 1e9 / calls,
              sizeof(flight_ring) / 1024);
}

} // namespace
} // namespace troupe
