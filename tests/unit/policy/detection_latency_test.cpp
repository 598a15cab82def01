// How long a stopped process stays unnoticed, in virtual time; the table of docs/design/0010 comes from here:
// build/tests/unit_policy "[.table]"
#include <algorithm>
#include <iostream>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include "runtime/base/counter_rng.hpp"
#include "runtime/policy/failure_detector.hpp"

namespace troupe {
namespace {

using namespace std::chrono_literals;

struct circumstances {
  duration detect_after;
  duration delay_max; // of a heartbeat, from sending to handling
  bool path_error;    // told at once, as for a killed process
};

// One peer that beats from a random phase on and stops at a random moment; from the stop to the verdict.
duration notice(const circumstances& c, std::uint64_t seed) {
  const counter_rng rng{seed, stream_of("detection latency")};
  const auto part = [&](std::uint64_t n, duration d) {
    return duration{
        static_cast<duration::rep>(static_cast<double>(rng.uniform(n)) * static_cast<double>(d.count()))};
  };
  const auto limits = timeouts::derive(c.detect_after);
  const incarnation_id peer{1, 1};
  const auto start = time_from_ns(0);
  failure_detector detector{limits};
  detector.watch(peer, rank_id{0}, start);
  const auto stop = start + 5 * c.detect_after + part(0, c.detect_after);
  auto look = start + part(1, limits.tick_interval);
  std::vector<time_point> beats; // when handled
  std::uint64_t n = 2;
  for (auto sent = start + part(n++, limits.heartbeat_interval); sent < stop;
       sent += limits.heartbeat_interval)
    beats.push_back(sent + part(n++, c.delay_max));
  std::size_t next = 0;
  bool told = false;
  for (;; look += limits.tick_interval) {
    while (next < beats.size() && beats[next] <= look) {
      detector.beat(peer, {}, beats[next]);
      ++next;
    }
    if (c.path_error && !told && look >= stop && next == beats.size()) {
      detector.path_error(peer, std::max(stop, beats.back()));
      told = true;
    }
    if (const auto out = detector.tick(look); !out.empty()) return look - stop;
  }
}

struct distribution {
  duration shortest;
  duration median;
  duration longest;
};

distribution measure(const circumstances& c) {
  std::vector<duration> all;
  for (std::uint64_t seed = 0; seed < 2000; ++seed)
    all.push_back(notice(c, seed));
  std::ranges::sort(all);
  return {all.front(), all[all.size() / 2], all.back()};
}

TEST_CASE("failure detector: a stop is noticed at about 1.1 x detect_after, always below 2 x (FD-2)") {
  for (const duration d : {duration{50ms}, duration{1s}, duration{30s}}) {
    const auto found = measure({.detect_after = d, .delay_max = d / 20, .path_error = false});
    CHECK(to_s(found.shortest) >= 0.89 * to_s(d));
    CHECK(to_s(found.longest) <= 1.11 * to_s(d));
  }
}

TEST_CASE("failure detector: with a path error a death is noticed within half of detect_after (FD-3)") {
  const auto found = measure({.detect_after = 1s, .delay_max = 50ms, .path_error = true});
  CHECK(found.longest <= 450ms);
}

TEST_CASE("failure detector: table of detection times", "[.table]") {
  std::cout << "detect_after  delay up to  path error  min ms  p50 ms  max ms\n";
  for (const auto& c :
       {circumstances{1s, 0ms, false}, circumstances{1s, 50ms, false}, circumstances{1s, 200ms, false},
        circumstances{250ms, 20ms, false}, circumstances{1s, 50ms, true}}) {
    const auto found = measure(c);
    std::cout << to_ms(c.detect_after) << " ms  " << to_ms(c.delay_max) << " ms  "
              << (c.path_error ? "yes" : "no") << "  " << to_ms(found.shortest) << "  " << to_ms(found.median)
              << "  " << to_ms(found.longest) << "\n";
  }
}

} // namespace
} // namespace troupe
