#include <algorithm>

#include <catch2/catch_test_macros.hpp>

#include "cli/chaos/chaos_plan.hpp"
#include "runtime/policy/fault_plan.hpp"

namespace troupe::chaos {
namespace {

using namespace std::chrono_literals;

plan_settings usual(std::uint64_t seed = 1, duration mtbf = 3s) {
  const auto kinds = known_kinds();
  return {seed, mtbf, {kinds.begin(), kinds.end()}};
}

std::vector<std::string> texts(const std::vector<strike>& plan) {
  std::vector<std::string> out;
  for (const auto& one : plan)
    out.push_back(to_text(one));
  return out;
}

TEST_CASE("chaos plan: the same seed, run, length and workers draw the same strikes (CH-1)") {
  const auto first = texts(draw_plan(usual(), 7, 30s, 3));
  CHECK(first == texts(draw_plan(usual(), 7, 30s, 3)));
  CHECK(first != texts(draw_plan(usual(), 8, 30s, 3)));
  CHECK(first != texts(draw_plan(usual(2), 7, 30s, 3)));
}

TEST_CASE("chaos plan: no worker is struck too often in any minute (CH-2)") {
  for (std::uint64_t run = 1; run <= 50; ++run) {
    const auto plan = draw_plan(usual(1, 200ms), run, 5min, 3);
    for (const auto& last : plan) {
      if (!last.rank) continue;
      const auto close = std::ranges::count_if(plan, [&](const strike& s) {
        return s.rank == last.rank && s.at <= last.at && last.at - s.at < 1min;
      });
      REQUIRE(close <= strikes_a_minute_max);
      REQUIRE(*last.rank < 3);
    }
  }
}

TEST_CASE("chaos plan: at most one strike of a run kills the director (CH-3)") {
  std::size_t runs_with_one = 0;
  for (std::uint64_t run = 1; run <= 200; ++run) {
    const auto plan = draw_plan(usual(1, 500ms), run, 20s, 2);
    const auto deaths = std::ranges::count_if(plan, &strike::kills_director);
    REQUIRE(deaths <= 1);
    if (deaths == 1) ++runs_with_one;
  }
  CHECK(runs_with_one > 0);
  const plan_settings only{1, 100ms, {"director-kill"}};
  CHECK(draw_plan(only, 1, 1min, 2).size() == 1);
}

TEST_CASE("chaos plan: every run is struck before the fault-free run would have ended (CH-4)") {
  for (std::uint64_t run = 1; run <= 200; ++run) {
    const auto plan = draw_plan(usual(1, 1min), run, 1999999999ns, 2);
    REQUIRE_FALSE(plan.empty());
    REQUIRE(plan.front().at < 2s);
    REQUIRE(plan.front().at > 0s);
    REQUIRE(plan.front().at % 1ms == 0ns); // so that a plan reads well
  }
}

TEST_CASE("chaos plan: the gaps between strikes have the mean that was asked for") {
  double gaps_s = 0;
  std::size_t count = 0;
  for (std::uint64_t run = 1; run <= 400; ++run) {
    const plan_settings settings{3, 3s, {"outside-stop"}};
    const auto plan = draw_plan(settings, run, 40s, 64); // so many workers that CH-2 leaves nothing out
    for (std::size_t i = 1; i < plan.size(); ++i) {
      gaps_s += to_s(plan[i].at - plan[i - 1].at);
      ++count;
    }
  }
  // 400 runs of 60 s with a fault each 3 s; gaps that a run's end cuts off are missing: a bit low.
  CHECK(count > 6000);
  const auto mean = gaps_s / static_cast<double>(count);
  CHECK(mean > 2.7);
  CHECK(mean < 3.1);
}

TEST_CASE("chaos plan: what is drawn is what the program reads in its plan file") {
  bool inside_seen = false;
  for (std::uint64_t run = 1; run <= 100; ++run) {
    const auto plan = draw_plan(usual(5, 1s), run, 30s, 4);
    const auto read = parse_fault_plan(to_toml(plan), "plan.toml");
    INFO(to_toml(plan));
    REQUIRE(read);
    std::vector<fault> inside;
    for (const auto& one : plan) {
      if (one.inside) inside.push_back(*one.inside);
    }
    REQUIRE(*read == inside);
    inside_seen = inside_seen || !inside.empty();
  }
  CHECK(inside_seen);
}

TEST_CASE("chaos plan: every kind of fault is known here") {
  const auto known = known_kinds();
  for (const auto name : fault_names())
    CHECK(std::ranges::find(known, name) != known.end());
  for (const auto kind : known) {
    const plan_settings only{1, 1s, {std::string{kind}}};
    CHECK_FALSE(draw_plan(only, 1, 20s, 2).empty());
  }
}

} // namespace
} // namespace troupe::chaos
