#include "runtime/policy/backoff.hpp"

#include <limits>

#include <catch2/catch_test_macros.hpp>

#include "runtime/base/counter_rng.hpp"

namespace troupe {
namespace {

using namespace std::chrono_literals;

TEST_CASE("backoff: grows by the factor up to the bound and starts anew after a success") {
  backoff wait{{.initial = 10ms, .max = 60ms, .factor = 2.0, .jitter = 0.5}};
  CHECK(wait.next(0) == 10ms);
  CHECK(wait.next(0) == 20ms);
  CHECK(wait.next(0) == 40ms);
  CHECK(wait.next(0) == 60ms);
  CHECK(wait.next(0) == 60ms);
  CHECK(wait.attempts() == 5);
  wait.reset();
  CHECK(wait.next(0) == 10ms);
}

TEST_CASE("backoff: delays stay within their bounds for any attempt and any jitter (BO-1, BO-2, BO-3)") {
  const counter_rng random{7, stream_of("backoff")};
  const backoff_policy policy{.initial = 3ms, .max = 7s, .factor = 1.7, .jitter = 0.4};
  REQUIRE(policy.validate());
  duration previous{};
  for (std::uint32_t attempt = 0; attempt < 200; ++attempt) {
    const auto undisturbed = policy.delay(attempt, 0);
    CHECK(undisturbed >= previous);
    previous = undisturbed;
    for (const auto bits : {random.bits(attempt), std::numeric_limits<std::uint64_t>::max()}) {
      const auto d = policy.delay(attempt, bits);
      CHECK(d <= policy.max);
      CHECK(to_ms(d) >= 0.6 * to_ms(undisturbed) - 1e-3);
      CHECK(d <= undisturbed);
    }
  }
  CHECK(policy.delay(std::numeric_limits<std::uint32_t>::max(), 0) == policy.max);
}

TEST_CASE("backoff: a policy that cannot work is refused with its value") {
  CHECK(backoff_policy{}.validate());
  CHECK_FALSE(backoff_policy{.initial = 0ms}.validate());
  CHECK_FALSE(backoff_policy{.initial = 2s, .max = 1s}.validate());
  CHECK_FALSE(backoff_policy{.factor = 0.5}.validate());
  CHECK(backoff_policy{.jitter = 1.5}.validate().failure().text.find("1.5") != std::string::npos);
}

} // namespace
} // namespace troupe
