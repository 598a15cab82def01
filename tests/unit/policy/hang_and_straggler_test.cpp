// Hang is not slow: ten thousand steps of noisy ranks in virtual time, as the director hears of them.
#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include <catch2/catch_test_macros.hpp>

#include "runtime/base/counter_rng.hpp"
#include "runtime/policy/failure_detector.hpp"

namespace troupe {
namespace {

using namespace std::chrono_literals;
using kind = verdict::kind;

constexpr std::uint32_t world = 4;

incarnation_id id(std::uint32_t rank) {
  return {rank + 1, 77};
}

// Synchronous training. A rank computes for a time of its own, about 40 ms: log-normal noise, in every
// hundredth step a tail of up to 50 times that, a pause of all ranks now and then. Then it waits for the
// others in the sum. Heartbeats come each interval, up to a tenth of a lease late.
class noisy_job {
public:
  explicit noisy_job(std::uint64_t seed)
      : random_{seed, stream_of("noisy job")} {
    for (std::uint32_t r = 0; r < world; ++r) {
      detector.watch(id(r), rank_id{r}, now);
      next_beat_[r] = now + limits.heartbeat_interval;
    }
    next_tick_ = now;
    detector.generation_started(now);
  }

  // One step, or as much of it as happens before a verdict.
  [[nodiscard]] std::vector<verdict> step() {
    ++computing_;
    const auto begin = now;
    time_point all_there = begin;
    for (std::uint32_t r = 0; r < world; ++r) {
      busy_[r] = own_time(r);
      arrives_[r] = hangs == r ? time_point::max() : begin + busy_[r];
      all_there = std::max(all_there, arrives_[r]);
    }
    began_ = begin;
    if (hangs) all_there = begin + 1h;
    while (now < all_there) {
      if (auto out = pass(std::min(all_there, next_event())); !out.empty()) return out;
    }
    last_busy_ = busy_;
    applied_ = computing_;
    return {};
  }

  timeouts limits{timeouts::derive(1s)};
  failure_detector detector{limits};
  time_point now{time_from_ns(1'000'000'000)};
  std::optional<std::uint32_t> hangs;
  std::optional<std::uint32_t> slow;

private:
  double draw() { return static_cast<double>(random_.uniform(drawn_++)); }

  duration own_time(std::uint32_t rank) {
    const double normal = std::sqrt(-2 * std::log(1 - draw())) * std::cos(6.2831853 * draw());
    double ms = 40 * std::exp(0.25 * normal);
    if (draw() < 0.01) ms *= 1 + 49 * draw() * draw();
    if (rank == 0) pause_ms_ = draw() < 0.001 ? 1000 * draw() : 0; // file system, neighbours
    if (rank == slow) ms *= 3;
    return duration{static_cast<duration::rep>((ms + pause_ms_) * 1e6)};
  }

  [[nodiscard]] time_point next_event() const {
    return std::min(*std::ranges::min_element(next_beat_), next_tick_);
  }

  std::vector<verdict> pass(time_point until) {
    now = until;
    for (std::uint32_t r = 0; r < world; ++r) {
      if (next_beat_[r] > now) continue;
      (void)detector.beat(id(r), state_of(r), now);
      const auto late = duration{static_cast<duration::rep>(draw() * 0.1e9)};
      next_beat_[r] = now + limits.heartbeat_interval + late;
    }
    if (next_tick_ > now) return {};
    next_tick_ = now + limits.tick_interval;
    return detector.tick(now);
  }

  [[nodiscard]] progress state_of(std::uint32_t rank) const {
    const bool inside = now >= arrives_[rank];
    return {.step_applied = step_id{applied_},
            .step_started = step_id{computing_},
            .doing = inside ? activity::in_collective : activity::computing,
            .doing_for = now - (inside ? arrives_[rank] : began_),
            .step_busy = last_busy_[rank],
            .arrivals = 2 * applied_ + (inside ? 1 : 0),
            .call = collective_call::sum,
            .call_number = applied_ + (inside ? 1 : 0)};
  }

  counter_rng random_;
  std::uint64_t drawn_{0};
  double pause_ms_{0};
  std::uint64_t computing_{0}, applied_{0};
  time_point began_, next_tick_;
  std::array<time_point, world> arrives_{}, next_beat_{};
  std::array<duration, world> busy_{}, last_busy_{};
};

TEST_CASE("failure detector: 10,000 noisy steps without a verdict, then a hang is named (FD-5, FD-6, FD-7)") {
  for (const std::uint64_t seed : {1U, 2U, 3U}) {
    noisy_job job{seed};
    for (int i = 0; i < 10'000; ++i) {
      const auto out = job.step();
      INFO("seed " << seed << ", step " << i << ": " << (out.empty() ? "" : out[0].text));
      REQUIRE(out.empty());
    }
    const auto bound = job.detector.hang_bound();
    CHECK(bound < 30s); // learned, and far below what a first step is given
    job.hangs = 2;
    const auto stuck = job.now;
    const auto out = job.step();
    REQUIRE(out.size() == 1);
    INFO(out[0].text);
    CHECK(out[0].what == kind::hung);
    CHECK(out[0].rank == rank_id{2});
    CHECK(out[0].step == step_id{10'001});
    CHECK(out[0].since - stuck < 300ms);
    CHECK(job.now - stuck < bound + 500ms);
    CHECK(out[0].text.starts_with("rank 2: computing for "));
    CHECK(out[0].text.find("at step 10001 while its peers wait in a collective (sum #10001) for ") !=
          std::string::npos);
  }
}

TEST_CASE("failure detector: a rank three times as slow is a straggler with its factor, and no hang (FD-7)") {
  for (const std::uint64_t seed : {4U, 5U, 6U}) {
    noisy_job job{seed};
    for (int i = 0; i < 500; ++i)
      REQUIRE(job.step().empty());
    job.slow = 1;
    std::vector<verdict> out;
    for (int i = 0; i < 500 && out.empty(); ++i)
      out = job.step();
    REQUIRE(out.size() == 1);
    INFO(out[0].text);
    CHECK(out[0].what == kind::straggler);
    CHECK(out[0].rank == rank_id{1});
    CHECK(out[0].factor >= 2);
    CHECK(out[0].text.find(" x its peers' ") != std::string::npos);
    for (int i = 0; i < 500; ++i) {
      for (const auto& more : job.step())
        CHECK(more.what == kind::straggler); // a new spell, after a sample that was not slow
    }
  }
}

TEST_CASE("failure detector: the collective is named by its number (FD-6)") {
  const auto limits = timeouts::derive(1s);
  failure_detector detector{limits};
  auto now = time_from_ns(1'000'000'000);
  const auto state = [](std::uint64_t arrivals) {
    return progress{.step_applied = step_id{4},
                    .step_started = step_id{5},
                    .doing = activity::in_collective,
                    .arrivals = arrivals,
                    .call = collective_call::all_gather,
                    .call_number = 9};
  };
  for (const std::uint64_t behind : {0U, 1U}) {
    for (std::uint32_t r = 0; r < 3; ++r)
      detector.watch(id(r), rank_id{r}, now);
    detector.generation_started(now);
    std::vector<verdict> out;
    while (out.empty()) {
      now += limits.tick_interval;
      for (std::uint32_t r = 0; r < 3; ++r)
        (void)detector.beat(id(r), state(10 - (r == 1 ? behind : 0)), now);
      out = detector.tick(now);
    }
    const std::string expected_text =
        behind == 0 ? "every rank: in a collective (all_gather #9) for "
                    : "rank 1: has not entered the collective that its peers wait in (all_gather #9), for ";
    CHECK(out[0].text.starts_with(expected_text));
  }
}

} // namespace
} // namespace troupe
