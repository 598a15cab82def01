#include <catch2/catch_test_macros.hpp>

#include "runtime/base/counter_rng.hpp"
#include "tests/unit/telemetry/flight_fixture.hpp"

namespace troupe {
namespace {

using namespace std::chrono_literals;
using flight::dump_of;
using flight::rank;
using verdict = flight_verdict;

// Ranks that train together until one of them does something else.
class crew {
public:
  explicit crew(std::uint32_t world, std::size_t elements = 1000)
      : elements_{elements} {
    for (std::uint32_t r = 0; r < world; ++r)
      ranks.push_back(std::make_unique<rank>(clock, r, world, elements));
  }
  [[nodiscard]] std::uint32_t world() const { return static_cast<std::uint32_t>(ranks.size()); }
  // Everybody but `absent` enters the sum of the next step; it ends if nobody is absent.
  void step(std::optional<std::uint32_t> absent = {}) {
    ++steps;
    for (std::uint32_t r = 0; r < world(); ++r) {
      clock.advance(1ms);
      if (r != absent) ranks[r]->enter(steps);
    }
    for (auto& one : ranks) {
      if (!absent) one->end(steps);
    }
  }
  // The generation ends: who waits is aborted; `dead` leaves its black box only.
  [[nodiscard]] std::vector<flight_dump> end(std::optional<std::uint32_t> dead = {},
                                             const std::string& how = "killed by SIGKILL") {
    clock.advance(1s);
    std::vector<flight_dump> dumps;
    for (std::uint32_t r = 0; r < world(); ++r) {
      if (r != dead) ranks[r]->abort();
      const auto by = r == dead ? flight_writer::director : flight_writer::worker;
      dumps.push_back(dump_of(*ranks[r], r, world(), clock, by, r == dead ? how : "rank lost"));
    }
    return dumps;
  }

  manual_clock clock;
  std::vector<std::unique_ptr<rank>> ranks;
  std::uint64_t steps{0};

private:
  std::size_t elements_;
};

// As they are written and read.
flight_finding found(const std::vector<flight_dump>& dumps) {
  std::vector<flight_dump> read;
  for (const auto& one : dumps)
    read.push_back(*parse_flight_dump(to_text(one)));
  return compare_flights(read);
}

using named = std::vector<std::uint32_t>;

TEST_CASE("flight comparison: ranks that did the same agree") {
  for (std::uint32_t world : {1U, 2U, 5U}) {
    crew all{world};
    for (int i = 0; i < 50; ++i)
      all.step();
    const auto finding = found(all.end());
    CHECK(finding.what == verdict::agree);
    CHECK(finding.ranks.empty());
    if (world == 5) CHECK(finding.text == "all 5 ranks agree");
  }
}

TEST_CASE("flight comparison: who did not enter a sum is named, with the step and since when") {
  crew all{3};
  for (int i = 0; i < 40; ++i)
    all.step();
  all.step(1);
  const auto finding = found(all.end(1));
  CHECK(finding.what == verdict::missing);
  CHECK(finding.ranks == named{1});
  CHECK((finding.sequence == 41 && finding.step == 41));
  CHECK(finding.waited >= 1s);
  CHECK(finding.text ==
        "rank 1 did not enter sum #41 of step 41 (sum of 1000 float32); rank 0 waited in it for 1.002s; its "
        "last was sum #40 of step 40, done 1.003s before its dump; rank 1 has ended: killed by SIGKILL");
}

TEST_CASE("flight comparison: who did not begin a part of a sum is named (FL-3)") {
  crew four{4};
  for (std::uint64_t step = 1; step <= 3; ++step) {
    for (std::uint32_t r = 0; r < 4; ++r) {
      four.ranks[r]->box->step_started = step;
      for (int part = 0; part < (step == 3 && r == 2 ? 1 : 3); ++part)
        four.ranks[r]->reduce->begin({0, 16}, {});
    }
    four.step(step < 3 ? std::nullopt : std::optional{2U});
  }
  const auto what = found(four.end(2));
  CHECK(what.what == verdict::missing);
  CHECK(what.ranks == named{2});
  CHECK(what.step == 3);
  CHECK(what.text.find("did not enter ") != std::string::npos);
}

TEST_CASE("flight comparison: a rank that dies while others compute is named for its end") {
  crew all{3};
  for (int i = 0; i < 10; ++i)
    all.step();
  const auto finding = found(all.end(2));
  CHECK(finding.what == verdict::ended);
  CHECK(finding.ranks == named{2});
}

TEST_CASE("flight comparison: where a rank has ended, nobody is blamed for being on his way (FX-2)") {
  crew all{4};
  all.step();
  all.step();
  all.ranks[3]->enter(3);
  CHECK(found(all.end(1)).ranks == named{1}); // rank 1 did not enter, nor did ranks 0 and 2
  const auto finding = found(all.end(3));     // rank 3 died where it waited for the others
  CHECK(finding.what == verdict::ended);
  CHECK(finding.ranks == named{3});
  auto dumps = all.end();
  dumps[2].about.by = flight_writer::failed;
  dumps[2].about.cause = "out of luck";
  CHECK(found(dumps).ranks == named{2});
  CHECK(found(dumps).text.ends_with("; rank 2 has failed: out of luck"));
}

TEST_CASE("flight comparison: where all wait in one sum, arrivals tell for whom") {
  crew all{3};
  all.step();
  for (auto& one : all.ranks)
    one->enter(2);
  auto dumps = all.end();
  CHECK(found(dumps).what == verdict::agree);
  for (auto& one : dumps)
    one.about.arrivals = {4, 3, 4};
  const auto finding = found(dumps);
  CHECK(finding.what == verdict::behind);
  CHECK(finding.ranks == named{1});
}

TEST_CASE("flight comparison: two ranks that differ are both named (FX-3)") {
  crew all{2};
  for (std::uint32_t r = 0; r < 2; ++r)
    all.ranks[r]->reduce->group()->start({.call = group_call::all_gather, .elements = 10 + r},
                                         [](expected<void>) {});
  const auto finding = found(all.end());
  CHECK(finding.what == verdict::different);
  CHECK(finding.ranks == named{0, 1});
  CHECK(finding.text ==
        "in all_gather #1 of step 0 rank 1 called all_gather of 11 float32, rank 0 all_gather "
        "of 10 float32 (another size)");
}

TEST_CASE("flight comparison: a send without its receive, and a pair that does not fit") {
  crew all{3};
  const auto call = [&](std::uint32_t who, group_call what, std::uint32_t peer, std::size_t elements) {
    all.ranks[who]->reduce->group()->start({.call = what, .elements = elements, .peer = peer},
                                           [](expected<void>) {});
  };
  call(0, group_call::send, 2, 8);
  call(2, group_call::receive, 0, 8);
  CHECK(found(all.end()).what == verdict::agree);
  call(0, group_call::send, 2, 8);
  auto finding = found(all.end());
  CHECK(finding.what == verdict::missing);
  CHECK(finding.ranks == named{2});
  call(2, group_call::receive, 0, 16);
  finding = found(all.end());
  CHECK(finding.what == verdict::different);
  CHECK(finding.ranks == named{0, 2});
}

TEST_CASE("flight comparison: a call that was refused, and made again, is one call (FL-2, GR-6)") {
  crew all{3};
  const auto barrier = [&](std::size_t who) {
    all.ranks[who]->reduce->group()->start({.call = group_call::barrier}, [](expected<void>) {});
  };
  all.ranks[1]->general.full = true;
  for (const std::size_t who : {0U, 1U, 2U})
    barrier(who);
  auto finding = found(all.end());
  CHECK(finding.what == verdict::missing);
  CHECK(finding.ranks == named{1});
  all.ranks[1]->general.full = false;
  barrier(1);
  finding = found(all.end());
  CHECK(finding.what == verdict::agree);
}

TEST_CASE("flight comparison: nobody is blamed for what a dump has lost (FX-1)") {
  crew all{3};
  for (int i = 0; i < 2000; ++i) // more than a ring holds
    all.step();
  all.step(2);
  auto dumps = all.end(2);
  CHECK(found(dumps).ranks == named{2});
  auto text = to_text(dumps[1]);
  auto cut = parse_flight_dump(text.substr(0, text.size() / 2)); // rank 1 looks as if it had stopped long ago
  REQUIRE(cut);
  dumps[1] = *cut;
  const auto finding = compare_flights(dumps);
  CHECK(finding.ranks == named{2});
  CHECK(finding.sequence == 2001);
}

TEST_CASE("flight comparison: a rank without a dump is named where others wait") {
  crew all{3};
  all.step();
  auto dumps = all.end();
  dumps.pop_back();
  CHECK(found(dumps).text == "the 2 ranks that left a dump agree, of 3");
  all.step(2);
  dumps = all.end();
  dumps.pop_back();
  const auto finding = found(dumps);
  CHECK(finding.what == verdict::unheard);
  CHECK(finding.ranks == named{2});
}

enum class mischief : unsigned char { kill, stop, skip, wrong_size, wrong_op, wrong_type, wrong_root };

// What one rank of `all` does wrong after some good steps; the dumps that are left.
std::vector<flight_dump> misbehave(crew& all, mischief what, std::uint32_t culprit) {
  if (what == mischief::kill) return all.step(culprit), all.end(culprit);
  if (what == mischief::stop) return all.step(culprit), all.end(culprit, "no heartbeat for 1s");
  if (what == mischief::skip) {
    all.step(culprit);
    all.ranks[culprit]->enter(all.steps);
    all.ranks[culprit]->end(all.steps - 1); // what an earlier sum gave
    return all.end();
  }
  for (std::uint32_t r = 0; r < all.world(); ++r) {
    group_operation call{.call =
                             what == mischief::wrong_root ? group_call::broadcast : group_call::all_reduce,
                         .elements = 77};
    if (r == culprit) {
      if (what == mischief::wrong_size) call.elements = 78;
      if (what == mischief::wrong_op) call.op = reduce_op::max;
      if (what == mischief::wrong_type) call.type = element_type::int32;
      if (what == mischief::wrong_root) call.peer = 1;
    }
    all.ranks[r]->reduce->group()->start(call, [](expected<void>) {});
  }
  return all.end();
}

TEST_CASE("flight comparison: in 100 seeded cases the culprit is named") {
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    const counter_rng random{seed, 0};
    const auto draw = [&](std::uint64_t position, std::uint64_t below) {
      return random.bits(position) % below;
    };
    const auto what = static_cast<mischief>(draw(0, 7));
    const auto world = static_cast<std::uint32_t>(3 + draw(1, 6));
    const auto culprit = static_cast<std::uint32_t>(draw(2, world));
    crew all{world, 1 + draw(3, 100'000)};
    for (auto good = 1 + draw(4, 1500); good > 0; --good)
      all.step();
    const auto finding = found(misbehave(all, what, culprit));
    INFO("seed " << seed << ": " << finding.text);
    CHECK(finding.ranks == named{culprit});
    const auto expected_verdict = what == mischief::kill || what == mischief::stop ? verdict::missing
                                  : what == mischief::skip                         ? verdict::left_out
                                                                                   : verdict::different;
    CHECK(finding.what == expected_verdict);
    CHECK(finding.step == all.steps);
  }
}

} // namespace
} // namespace troupe
