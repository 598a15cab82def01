#include "runtime/policy/failure_detector.hpp"

#include <algorithm>
#include <array>

#include <catch2/catch_test_macros.hpp>

#include "runtime/base/counter_rng.hpp"

namespace troupe {
namespace {

using namespace std::chrono_literals;
using kind = verdict::kind;

constexpr time_point start = time_from_ns(1'000'000'000);

incarnation_id id(std::uint64_t n) {
  return {n + 1, 77};
}

progress at(activity doing, std::uint64_t started, std::uint64_t applied, duration busy = {}) {
  return {
      .step_applied = step_id{applied}, .step_started = step_id{started}, .doing = doing, .step_busy = busy};
}

// Ranks 0 .. count-1 under one detector, in virtual time; every rank beats until it is silenced.
class bench {
public:
  explicit bench(std::size_t count, duration detect_after = 1s)
      : limits{timeouts::derive(detect_after)}
      , detector{limits}
      , states(count)
      , silent(count, false) {
    for (std::size_t r = 0; r < count; ++r)
      detector.watch(id(r), rank_id{static_cast<std::uint32_t>(r)}, now);
  }
  // Runs for `span`: heartbeats each interval, looks each tick; returns the first batch of verdicts.
  std::vector<verdict> run(duration span) {
    for (const auto end = now + span; now < end;) {
      now += limits.tick_interval;
      beats = !beats;
      if (beats) beat_all();
      if (auto out = detector.tick(now); !out.empty()) return out;
    }
    return {};
  }
  void beat_all() {
    for (std::size_t r = 0; r < states.size(); ++r) {
      if (!silent[r]) detector.beat(id(r), states[r], now);
    }
  }
  // All ranks apply `steps` steps of `each`, so that the detector learns the pace.
  void train(std::uint64_t steps, duration each) {
    for (std::uint64_t s = 0; s < steps; ++s) {
      for (auto& state : states) {
        state.doing = activity::computing;
        state.step_applied = state.step_started;
        state.step_started = state.step_applied.next();
      }
      REQUIRE(run(each).empty());
    }
  }

  timeouts limits;
  failure_detector detector;
  time_point now{start};
  std::vector<progress> states;
  std::vector<bool> silent;
  bool beats{false};
};

TEST_CASE("failure detector: who beats is never expired (FD-1)") {
  bench b{4};
  CHECK(b.run(60s).empty());
  CHECK(b.detector.stalls() == 0);
}

TEST_CASE("failure detector: silence is one verdict, in less than 2 x detect_after (FD-2)") {
  bench b{3};
  REQUIRE(b.run(5s).empty());
  const auto stopped = b.now;
  b.silent[1] = true;
  const auto out = b.run(5s);
  REQUIRE(out.size() == 1);
  CHECK(out[0].what == kind::lease_expired);
  CHECK(out[0].rank == rank_id{1});
  CHECK(out[0].who == id(1));
  CHECK_FALSE(out[0].path_lost);
  CHECK(b.now - stopped <= b.limits.lease + b.limits.tick_interval);
  CHECK(out[0].text == "rank 1: no heartbeat for 1s (lease 1s)");
  CHECK(b.run(10s).empty()); // FD-8
  CHECK_FALSE(b.detector.beat(id(1), {}, b.now));
  CHECK(b.detector.stale_beats() == 1);
}

TEST_CASE("failure detector: a path error alone is no verdict (FD-3)") {
  bench b{2};
  REQUIRE(b.run(2s).empty());
  b.detector.path_error(id(0), b.now);
  CHECK(b.detector.suspected(id(0)));
  CHECK(b.detector.tick(b.now).empty());
  CHECK(b.run(10s).empty()); // heartbeats go on: the path was opened again
  CHECK_FALSE(b.detector.suspected(id(0)));
}

TEST_CASE("failure detector: a path error and silence for path_grace is a verdict (FD-3)") {
  bench b{2};
  REQUIRE(b.run(2s).empty());
  const auto lost = b.now;
  b.silent[0] = true;
  b.detector.path_error(id(0), b.now);
  b.detector.path_error(id(0), b.now + 1ms); // told twice: the grace does not begin anew
  const auto out = b.run(5s);
  REQUIRE(out.size() == 1);
  CHECK(out[0].path_lost);
  CHECK(b.now - lost >= b.limits.path_grace);
  CHECK(b.now - lost <= b.limits.path_grace + b.limits.tick_interval);
}

TEST_CASE("failure detector: a stall of the observer expires nobody (FD-4)") {
  bench b{4};
  REQUIRE(b.run(3s).empty());
  b.now += 20s; // the observer was not run; heartbeats are still queued behind this look
  CHECK(b.detector.tick(b.now).empty());
  CHECK(b.detector.stalls() == 1);
  CHECK(b.detector.leases_extended() == 4);
  b.beat_all();
  CHECK(b.run(10s).empty());
}

TEST_CASE(
    "failure detector: stalls in a row, with no time to hear anybody between them, expire nobody (FD-4)") {
  bench b{4};
  REQUIRE(b.run(3s).empty());
  for (int stalls = 0; stalls < 5; ++stalls) {
    b.now += 2s;
    CHECK(b.detector.tick(b.now).empty());
  }
  b.beat_all();
  CHECK(b.run(10s).empty());
}

TEST_CASE("failure detector: stalls hide no death: each counts as a heartbeat of silence (FD-4)") {
  bench b{2};
  REQUIRE(b.run(3s).empty());
  b.silent[1] = true;
  for (int stalls = 0; stalls < 13; ++stalls) {
    b.now += 400ms;
    const auto out = b.detector.tick(b.now);
    b.beat_all();
    if (out.empty()) continue;
    CHECK(out[0].rank == rank_id{1});
    CHECK(stalls >= 9);
    return;
  }
  FAIL("a death was never found");
}

TEST_CASE("failure detector: a stall does not lengthen what is left of a path's grace beyond a grace (FD-3, "
          "FD-4)") {
  bench b{2};
  REQUIRE(b.run(3s).empty());
  b.silent[1] = true;
  b.detector.path_error(id(1), b.now);
  b.now += 2s;
  REQUIRE(b.detector.tick(b.now).empty());
  const auto resumed = b.now;
  const auto out = b.run(5s);
  REQUIRE(out.size() == 1);
  CHECK(out[0].path_lost);
  CHECK(b.now - resumed <= b.limits.path_grace + b.limits.tick_interval);
}

TEST_CASE("failure detector: heartbeats without a step are a hang, not before the bound (FD-5)") {
  bench b{1};
  b.train(20, 200ms);
  const auto bound = b.detector.hang_bound();
  CHECK(bound == b.limits.hang_floor);
  const auto stuck = b.now;
  const auto out = b.run(1min);
  REQUIRE(out.size() == 1);
  CHECK(out[0].what == kind::hung);
  CHECK(b.now - stuck >= bound - 200ms - b.limits.heartbeat_interval);
  CHECK(b.now - stuck <= bound + b.limits.heartbeat_interval);
  CHECK(out[0].text.find("heartbeats arrive") != std::string::npos);
  CHECK(b.run(1min).empty()); // FD-8: once per step
}

TEST_CASE("failure detector: slow steps raise the hang bound (FD-5)") {
  bench b{2};
  b.train(10, 4s);
  CHECK(b.detector.hang_bound() >= 39s);
  CHECK(b.run(30s).empty());
}

TEST_CASE("failure detector: an unlearned pace gets the first step's deadline (FD-5)") {
  bench b{1};
  b.states[0] = at(activity::computing, 1, 0);
  CHECK(b.run(29s).empty());
  CHECK(b.run(5s).size() == 1);
}

TEST_CASE("failure detector: who waits in the collective is not the one that hangs (FD-6)") {
  bench b{4};
  b.train(10, 200ms);
  for (const std::size_t r : {0U, 1U, 3U})
    b.states[r].doing = activity::in_collective;
  const auto out = b.run(1min);
  REQUIRE(out.size() == 1);
  CHECK(out[0].what == kind::hung);
  CHECK(out[0].rank == rank_id{2});
}

TEST_CASE("failure detector: a rank that misses the next step's collective is named (FD-6)") {
  bench b{3};
  b.train(10, 200ms);
  for (auto& state : b.states)
    state.doing = activity::in_collective;
  for (const std::size_t r : {0U, 2U}) { // they came out and entered the next one
    b.states[r].step_applied = b.states[r].step_started;
    b.states[r].step_started = b.states[r].step_started.next();
  }
  const auto out = b.run(1min);
  REQUIRE(out.size() == 1);
  CHECK(out[0].rank == rank_id{1});
}

TEST_CASE("failure detector: who stands before the collective that its peers wait in is named (FD-6)") {
  bench b{3};
  b.train(10, 200ms);
  for (auto& state : b.states) {
    state.doing = activity::in_collective;
    state.arrivals = 21;
  }
  b.states[1].arrivals = 20;
  const auto out = b.run(1min);
  REQUIRE(out.size() == 1);
  CHECK(out[0].what == kind::hung);
  CHECK(out[0].rank == rank_id{1});
  CHECK(out[0].text.starts_with("rank 1: has not entered the collective that its peers wait in, for "));
}

TEST_CASE("failure detector: those whom a hung rank kept waiting are not hung once it is gone (FD-9)") {
  bench b{3};
  b.train(10, 200ms);
  for (const std::size_t r : {0U, 2U})
    b.states[r].doing = activity::in_collective;
  REQUIRE(b.run(1min).size() == 1);
  b.detector.forget(id(1));
  b.detector.generation_ended();
  b.silent[1] = true;
  CHECK(b.run(1min).empty());
  b.detector.generation_started(b.now);
  CHECK_FALSE(b.run(1min).empty());
}

TEST_CASE("failure detector: news that is older than a step of somebody else proves no hang (FD-10)") {
  bench b{3};
  b.train(10, 200ms);
  for (auto& state : b.states)
    state.doing = activity::in_collective;
  b.states[1].doing = activity::computing;
  REQUIRE(b.run(b.detector.hang_bound() - 500ms).empty()); // rank 1 holds all up, not for long enough yet
  b.now += 600ms;
  b.states[0].step_applied =
      b.states[0].step_applied.next(); // it goes on, and rank 0 is the first to be heard of
  REQUIRE(b.detector.beat(id(0), b.states[0], b.now));
  CHECK(b.detector.tick(b.now).empty());
  b.states[1].step_applied = b.states[2].step_applied = b.states[0].step_applied;
  CHECK(b.run(1s).empty());
}

TEST_CASE("failure detector: everybody inside one collective is a hang of the collective (FD-6)") {
  bench b{3};
  b.train(10, 200ms);
  for (auto& state : b.states)
    state.doing = activity::in_collective;
  const auto out = b.run(1min);
  REQUIRE(out.size() == 1);
  CHECK(out[0].what == kind::collective_hung);
  CHECK(out[0].text.starts_with("every rank: in a collective"));
  CHECK(b.run(1min).empty());
}

TEST_CASE("failure detector: waiting for a rank that evaluates is no hang (FD-6)") {
  bench b{3};
  b.train(10, 200ms);
  for (auto& state : b.states)
    state.doing = activity::in_collective;
  b.states[0].doing = activity::evaluating;
  CHECK(b.run(2min).empty());
}

TEST_CASE("failure detector: a rank slower than its peers for several samples is a straggler (FD-7)") {
  bench b{4};
  const auto step = [&b](std::uint64_t n, duration slow) {
    for (std::size_t r = 0; r < 4; ++r)
      b.states[r] = at(activity::computing, n + 1, n, r == 2 ? slow : 20ms);
    return b.run(100ms);
  };
  std::uint64_t n = 1;
  for (; n < 20; ++n)
    REQUIRE(step(n, 25ms).empty());
  std::vector<verdict> out;
  std::uint64_t slow_samples = 0;
  while (out.empty() && slow_samples < 20) {
    out = step(n++, 60ms);
    ++slow_samples;
  }
  REQUIRE(out.size() == 1);
  CHECK(out[0].what == kind::straggler);
  CHECK(out[0].rank == rank_id{2});
  CHECK(slow_samples == 5);
  CHECK(out[0].text == "rank 2: 60ms of its own a step, 3.0 x its peers' 20ms, 5 samples running");
  for (int i = 0; i < 20; ++i)
    CHECK(step(n++, 60ms).empty()); // FD-8
}

TEST_CASE("failure detector: who is past a sum is not what the others in it wait for (FD-6)") {
  const std::uint64_t step = 10;
  for (const auto doing : {activity::holding, activity::evaluating}) {
    bench b{4};
    b.train(step, 200ms);
    for (std::size_t r = 0; r < 4; ++r) // two have the last sum; between hosts two others may still lack it
      b.states[r] = r < 2 ? at(doing, step, step) : at(activity::in_collective, step, step - 1);
    const auto out = b.run(10s);
    REQUIRE(out.size() == 1);
    CHECK(out[0].what == verdict::kind::collective_hung);
    CHECK(out[0].rank == rank_id{2});
  }
  bench b{4};
  b.train(step, 200ms);
  for (std::size_t r = 0; r < 4; ++r) // one is still to come
    b.states[r] = r < 1 ? at(activity::loading, step, step - 1) : at(activity::in_collective, step, step - 1);
  CHECK(b.run(10s).empty());
}

TEST_CASE("failure detector: who beats is told from who is silent, suspected or unknown") {
  bench b{3};
  REQUIRE(b.run(1s).empty());
  b.silent[1] = true;
  REQUIRE(b.run(b.limits.path_grace).empty());
  b.detector.path_error(id(2), b.now);
  CHECK(b.detector.beats(id(0), b.now));
  CHECK_FALSE(b.detector.beats(id(1), b.now));
  CHECK_FALSE(b.detector.beats(id(2), b.now));
  CHECK_FALSE(b.detector.beats(id(9), b.now));
}

TEST_CASE("failure detector: a new generation starts hang clocks anew and keeps leases") {
  bench b{2};
  b.train(10, 200ms);
  REQUIRE(b.run(2s).empty());
  b.detector.generation_started(b.now);
  CHECK(b.run(2500ms).empty()); // would have been a hang
  b.silent[0] = true;
  b.detector.generation_started(b.now);
  CHECK(b.run(2s).size() == 1);
}

TEST_CASE("failure detector: forgotten and unknown incarnations give no verdicts") {
  bench b{2};
  b.silent = {true, true};
  b.detector.forget(id(0));
  b.detector.forget(id(9));
  b.detector.path_error(id(9), b.now);
  const auto out = b.run(3s);
  REQUIRE(out.size() == 1);
  CHECK(out[0].rank == rank_id{1});
  CHECK_FALSE(b.detector.beat(id(0), {}, b.now));
}

TEST_CASE("orphan watch: a silent director orphans, a stopped worker does not blame it (FD-4)") {
  const auto limits = timeouts::derive(1s);
  orphan_watch watch{limits, start};
  auto now = start;
  const auto pass = [&](duration span, bool beats) {
    for (const auto end = now + span; now < end;) {
      now += limits.tick_interval;
      if (beats) watch.beat(now);
      if (watch.orphaned(now)) return true;
    }
    return false;
  };
  CHECK_FALSE(pass(20s, true));
  CHECK_FALSE(pass(4s, false));
  watch.beat(now);
  now += 1min; // this process was stopped
  CHECK_FALSE(watch.orphaned(now));
  CHECK_FALSE(pass(500ms, false));
  CHECK_FALSE(pass(5s, true));
  const auto gone = now;
  CHECK(pass(1min, false));
  CHECK(now - gone <= limits.orphan_grace + limits.tick_interval);
}

// Random deaths, path errors that heal, late heartbeats and stalls of the observer, in virtual time.
class random_run {
public:
  explicit random_run(std::uint64_t seed)
      : rng_{seed, stream_of("failure detector")} {}

  void go() {
    for (std::uint32_t r = 0; r < world; ++r) {
      detector_.watch(id(r), rank_id{r}, now_);
      next_beat_[r] = now_ + fraction(limits_.heartbeat_interval);
    }
    next_look_ = now_;
    for (const auto end = now_ + 40s; now_ < end;)
      event();
  }

private:
  static constexpr std::size_t world = 5;

  double uniform() { return static_cast<double>(rng_.uniform(position_++)); }
  duration fraction(duration d) {
    return duration{static_cast<duration::rep>(uniform() * static_cast<double>(d.count()))};
  }
  void event() {
    const auto next = std::ranges::min_element(next_beat_);
    if (*next < next_look_) {
      now_ = *next;
      const auto r = static_cast<std::size_t>(next - next_beat_.begin());
      // Up to four intervals late: within what FD-1 promises.
      *next = dead_[r] ? time_point::max() : now_ + fraction(4 * limits_.heartbeat_interval);
      if (dead_[r]) return;
      detector_.beat(id(r), at(activity::holding, 0, 0), now_);
      last_beat_[r] = now_;
      missed_before_[r] = missed_;
      if (uniform() < 0.002) dead_[r] = true;
      return;
    }
    now_ = next_look_;
    look();
    // Half of them are followed by another one before any heartbeat was handled.
    const bool stall = uniform() < (now_ == stalled_until_ ? 0.5 : 0.002);
    next_look_ = now_ + limits_.tick_interval + (stall ? limits_.stall_gap + fraction(5s) : 0ns);
    if (stall) stall_until(next_look_);
  }
  // Heartbeats that arrive during a stall are handled after it, behind the next look.
  void stall_until(time_point end) {
    for (std::size_t r = 0; r < world; ++r) {
      if (!dead_[r] && next_beat_[r] <= end) next_beat_[r] = end + 1ns;
    }
    stalled_until_ = end;
    if (end - now_ > limits_.stall_gap) missed_ += end - now_ - limits_.heartbeat_interval;
  }
  void look() {
    for (const auto& v : detector_.tick(now_)) {
      const auto r = v.rank.value();
      INFO("rank " << r << " at " << to_ms(now_ - start) << " ms");
      REQUIRE(v.what == kind::lease_expired);
      REQUIRE(dead_[r]);       // FD-1, FD-4
      REQUIRE_FALSE(told_[r]); // FD-8
      told_[r] = true;
    }
    for (std::size_t r = 0; r < world; ++r) {
      const auto missed = missed_ - missed_before_[r]; // since its last heartbeat
      const auto due = last_beat_[r] + limits_.lease + missed + (missed > 0ns ? limits_.path_grace : 0ns);
      if (dead_[r] && now_ > due + limits_.tick_interval) REQUIRE(told_[r]); // FD-2
    }
  }

  timeouts limits_{timeouts::derive(1s)};
  failure_detector detector_{limits_};
  counter_rng rng_;
  std::uint64_t position_{0};
  time_point now_{start};
  time_point next_look_;
  time_point stalled_until_{};
  duration missed_{0}; // in all stalls
  std::array<duration, world> missed_before_{};
  std::array<time_point, world> next_beat_{};
  std::array<time_point, world> last_beat_{start, start, start, start, start};
  std::array<bool, world> dead_{};
  std::array<bool, world> told_{};
};

TEST_CASE("failure detector: random deaths are found, and nobody else, in time (FD-1 .. FD-4, FD-8)") {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    INFO("seed " << seed);
    random_run{seed}.go();
  }
}

} // namespace
} // namespace troupe
