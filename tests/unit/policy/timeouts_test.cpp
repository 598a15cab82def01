#include "runtime/policy/timeouts.hpp"

#include <catch2/catch_test_macros.hpp>

namespace troupe {
namespace {

using namespace std::chrono_literals;

TEST_CASE("timeouts: whatever is derived from an accepted setting is in order (TO-1 .. TO-13)") {
  for (const duration d : {duration{50ms}, duration{100ms}, duration{250ms}, duration{999ms}, duration{1s},
                           duration{7s}, duration{1min}, duration{10min}}) {
    const auto valid = timeouts::derive(d).validate();
    INFO(to_ms(d) << " ms: " << (valid ? "" : valid.failure().text));
    CHECK(valid);
  }
}

TEST_CASE("timeouts: a setting out of range is refused with the range") {
  for (const duration d : {duration{0}, duration{49ms}, duration{11min}}) {
    const auto refused = timeouts::derive(d).validate();
    REQUIRE_FALSE(refused);
    CHECK(refused.failure().text.find("50ms to 10min") != std::string::npos);
  }
}

TEST_CASE("timeouts: a wrong order is refused and names the relation with both values") {
  struct breakage {
    duration timeouts::*what;
    duration value;
    const char* relation;
  };
  for (const auto& b :
       {breakage{&timeouts::heartbeat_interval, 200ms, "TO-1"},
        breakage{&timeouts::tick_interval, 150ms, "TO-2"}, breakage{&timeouts::path_grace, 1s, "TO-3"},
        breakage{&timeouts::lease, 1950ms, "TO-4"}, breakage{&timeouts::hang_floor, 2s, "TO-5"},
        breakage{&timeouts::collective_last_net, 5s, "TO-6"}, breakage{&timeouts::orphan_grace, 2s, "TO-7"},
        breakage{&timeouts::request_deadline, 1s, "TO-8"},
        breakage{&timeouts::handshake_deadline, 30s, "TO-9"},
        breakage{&timeouts::exchange_deadline, 31s, "TO-10"},
        breakage{&timeouts::report_deadline, 900ms, "TO-11"}, breakage{&timeouts::members_wait, 30s, "TO-12"},
        breakage{&timeouts::orphan_grace, 30s, "TO-13"}}) {
    auto t = timeouts::derive(1s);
    t.*(b.what) = b.value;
    const auto refused = t.validate();
    INFO(b.relation);
    REQUIRE_FALSE(refused);
    CHECK(refused.failure().code == errc::bad_argument);
    CHECK(refused.failure().text.find(b.relation) != std::string::npos);
  }
  auto t = timeouts::derive(1s);
  t.path_grace = 1s;
  CHECK(t.validate().failure().text == "path_grace (1s) must be shorter than lease (1s) TO-3");
}

TEST_CASE("timeouts: the hang bound grows with step times and never falls below its floor (FD-5)") {
  const auto t = timeouts::derive(1s);
  CHECK(t.hang_bound(2ms, 10ms) == 3s);
  CHECK(t.hang_bound(1s, 2s) == 10s);
  CHECK(t.hang_bound(1s, 30s) == 1min);
  CHECK(t.collective_bound(1s, 30s) == 2min);
  CHECK(t.collective_bound(1ms, 1ms) == t.collective_last_net);
}

TEST_CASE("timeouts: the table names every value once") {
  const auto t = timeouts::derive(1s);
  const auto text = t.table();
  CHECK(text.starts_with("detect_after                1s  the setting\nheartbeat_interval       100ms  "));
  for (const auto& r : t.rows())
    CHECK(text.find(std::string{r.name} + " ") != std::string::npos);
}

} // namespace
} // namespace troupe
