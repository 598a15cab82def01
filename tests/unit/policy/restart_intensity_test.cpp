#include "runtime/policy/restart_intensity.hpp"

#include <vector>

#include <catch2/catch_test_macros.hpp>

#include "runtime/base/counter_rng.hpp"

namespace troupe {
namespace {

using namespace std::chrono_literals;

failure failed(std::uint32_t rank, std::uint64_t step, failure_kind kind, std::string cause = "") {
  failure f;
  f.kind = kind;
  f.cause = std::move(cause);
  f.rank = rank_id{rank};
  f.step = step_id{step};
  return f;
}

TEST_CASE("restart intensity: no more than the maximum within a period (RI-1)") {
  restart_intensity budget{{.restarts_max = 2, .period = 10s}};
  const auto t = time_from_ns(0);
  CHECK(budget.admit(t));
  CHECK(budget.admit(t + 1s));
  CHECK(budget.admit(t + 10s)); // the first is out of the window
  CHECK_FALSE(budget.admit(t + 10500ms));
}

TEST_CASE("restart intensity: a spent budget stays spent (RI-2)") {
  restart_intensity budget{{.restarts_max = 0, .period = 10s}};
  CHECK_FALSE(budget.admit(time_from_ns(0)));
  CHECK(budget.spent());
  CHECK_FALSE(budget.admit(time_from_ns(0) + 1h));
}

TEST_CASE("restart intensity: at random moments, every window holds at most the maximum (RI-1)") {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const counter_rng random{seed, stream_of("intensity")};
    restart_intensity budget{{.restarts_max = 3, .period = 1s}};
    std::vector<time_point> admitted;
    auto now = time_from_ns(0);
    for (std::uint64_t i = 0; i < 500 && !budget.spent(); ++i) {
      now += duration{static_cast<duration::rep>(random.bits(i) % 900'000'000)};
      if (budget.admit(now)) admitted.push_back(now);
    }
    for (std::size_t i = 3; i < admitted.size(); ++i)
      REQUIRE(admitted[i] - admitted[i - 3] >= 1s);
    REQUIRE(budget.admitted() == admitted.size());
  }
}

TEST_CASE("same failure guard: the third time without progress stops the job (SF-1)") {
  same_failure_guard guard;
  const auto f = failed(1, 40, failure_kind::thrown, "std::runtime_error: x");
  CHECK_FALSE(guard.record(f));
  CHECK_FALSE(guard.record(f));
  CHECK(guard.record(f));
}

TEST_CASE("same failure guard: another rank, step, kind or cause is another failure (SF-1)") {
  same_failure_guard guard;
  CHECK_FALSE(guard.record(failed(1, 40, failure_kind::thrown, "x")));
  CHECK_FALSE(guard.record(failed(1, 40, failure_kind::thrown, "x")));
  CHECK_FALSE(guard.record(failed(0, 40, failure_kind::thrown, "x")));
  CHECK_FALSE(guard.record(failed(1, 41, failure_kind::thrown, "x")));
  CHECK_FALSE(guard.record(failed(1, 40, failure_kind::kill, "x")));
  CHECK_FALSE(guard.record(failed(1, 40, failure_kind::thrown, "y")));
  CHECK(guard.record(failed(1, 40, failure_kind::thrown, "x")));
}

TEST_CASE("same failure guard: ranks that fail by turns are still counted (SF-1)") {
  same_failure_guard guard;
  for (int i = 0; i < 2; ++i) {
    CHECK_FALSE(guard.record(failed(0, 40, failure_kind::thrown, "x")));
    CHECK_FALSE(guard.record(failed(1, 40, failure_kind::thrown, "x")));
  }
  CHECK(guard.record(failed(1, 40, failure_kind::thrown, "x")));
}

TEST_CASE("same failure guard: durations in a verdict's text do not hide a repetition (SF-1)") {
  same_failure_guard guard;
  CHECK_FALSE(guard.record(failed(1, 40, failure_kind::hang, "no step for 3.1s")));
  CHECK_FALSE(guard.record(failed(1, 40, failure_kind::hang, "no step for 3.2s")));
  CHECK(guard.record(failed(1, 40, failure_kind::hang, "no step for 3.3s")));
}

TEST_CASE("same failure guard: what the network or a stopped host does is not the program's fault (SF-1)") {
  same_failure_guard guard;
  for (int i = 0; i < 5; ++i) {
    CHECK_FALSE(guard.record(failed(1, 40, failure_kind::path_lost)));
    CHECK_FALSE(guard.record(failed(1, 40, failure_kind::stop)));
  }
}

TEST_CASE("same failure guard: progress forgets, redoing lost steps does not (SF-2)") {
  same_failure_guard guard;
  const auto f = failed(1, 40, failure_kind::kill);
  CHECK_FALSE(guard.record(f));
  CHECK_FALSE(guard.record(f));
  for (std::uint64_t redone = 30; redone < 40; ++redone)
    guard.committed(step_id{redone});
  CHECK(guard.record(f));
  guard.committed(step_id{40});
  CHECK_FALSE(guard.record(f));
}

} // namespace
} // namespace troupe
