// Bulk over sessions whose paths damage it, or are cut while it is checked.
#include <algorithm>
#include <optional>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include "runtime/base/digest.hpp"
#include "tests/actors/support/driver.hpp"
#include "tests/support/damaging_transport.hpp"
#include "tests/support/transport_pairs.hpp"

namespace troupe::test {
namespace {

constexpr std::size_t bulk_bytes = (5U << 20) + 3; // several slices of a digest, the last one short

// What `a` sends passes through `source` below its session, and what `b` receives through `damage`.
struct damaged_pair : loopback_pair {
  std::unique_ptr<transport> below_a{std::move(a)}, below_b{std::move(b)};
  damaging_transport source{*below_a};
  damaging_transport damage{*below_b};
  damaged_pair() {
    a = std::make_unique<session_transport>(loop.queue, loop.clock, source);
    b = std::make_unique<session_transport>(loop.queue, loop.clock, damage);
    listen();
    connect();
    for (std::size_t i = 0; i < bytes.size(); ++i)
      bytes[i] = static_cast<std::byte>((i * 2654435761U) >> 13U);
  }
  ~damaged_pair() { // before what they stand on
    a.reset();
    b.reset();
  }
  [[nodiscard]] const session_counters& counted(const std::unique_ptr<transport>& end) const {
    return static_cast<const session_transport&>(*end).counters();
  }
  // Both ends know how it went.
  [[nodiscard]] bool transfer(std::uint64_t number) {
    outcome.reset();
    a->send_bulk(b->self(), number, bytes, [&](expected<void> result) {
      ++done;
      outcome = std::move(result);
    });
    return loop.run_until([&] {
      const auto known = at_b.bulks.find(number);
      return outcome && known != at_b.bulks.end() && known->second.result;
    });
  }

  std::vector<std::byte> bytes = std::vector<std::byte>(bulk_bytes);
  std::optional<expected<void>> outcome;
  int done{0};
};

TEST_CASE("session bulk: what arrived wrong begins again, and arrives right (SE-6)") {
  damaged_pair pair;
  pair.damage.damages_left = limits::session_wrong_arrivals_max - 1;
  REQUIRE(pair.transfer(5));
  CHECK(pair.outcome->has_value());
  CHECK(pair.at_b.bulks.at(5).result->has_value());
  CHECK(pair.at_b.bulks.at(5).bytes == pair.bytes);
  CHECK(pair.at_b.bulks_announced == 1);
  CHECK(pair.damage.arrived == limits::session_wrong_arrivals_max);
  CHECK(pair.counted(pair.b).arrived_wrong == limits::session_wrong_arrivals_max - 1);
  CHECK(pair.counted(pair.a).transfers_again == limits::session_wrong_arrivals_max - 1);
  CHECK(pair.counted(pair.a).interruptions == 0); // the path is not to blame
}

TEST_CASE(
    "session bulk: what arrives wrong again and again ends in an error that names both digests (SE-6)") {
  damaged_pair pair;
  pair.damage.damages_left = 1000;
  REQUIRE(pair.transfer(5));
  CHECK(pair.damage.arrived == limits::session_wrong_arrivals_max);
  CHECK(pair.done == 1);
  const auto right = digest_of(pair.bytes);
  const auto wrong = digest_of(pair.at_b.bulks.at(5).bytes);
  for (const auto& result : {*pair.outcome, *pair.at_b.bulks.at(5).result}) {
    REQUIRE_FALSE(result);
    CHECK(result.failure().code == errc::corrupt);
    CHECK(result.failure().text == "transfer 5 arrived wrong 3 times: digest " + right +
                                       " where it was sent, " + wrong + " where it arrived");
  }
  CHECK(pair.at_a.losses.empty());
  CHECK(pair.at_b.losses.empty());
  pair.damage.damages_left = 0;
  REQUIRE(pair.transfer(6)); // the session goes on
  CHECK(pair.outcome->has_value());
  CHECK(pair.at_b.bulks.at(6).bytes == pair.bytes);
}

TEST_CASE(
    "session bulk: a cut between the arrival and its check begins it again; it is handed up once (SE-5)") {
  damaged_pair pair;
  int cuts = 0;
  pair.damage.on_arrival = [&] {
    if (++cuts > 2) return;
    pair.loop.queue.post([&] { // the bytes are there, their digest is being computed
      pair.below_b->drop(pair.a->self());
      static_cast<session_transport&>(*pair.b).break_path(pair.a->self(), {errc::path_lost, "cut"});
    });
  };
  pair.damage.damages_left = 1;
  REQUIRE(pair.transfer(5));
  CHECK(pair.outcome->has_value());
  CHECK(pair.done == 1);
  CHECK(pair.at_b.bulks_announced == 1);
  CHECK(pair.at_b.bulks.at(5).bytes == pair.bytes);
  CHECK(pair.damage.arrived == 3);
}

TEST_CASE("session bulk: neither side says success while the digest is not compared (SE-6)") {
  damaged_pair pair;
  pair.damage.on_arrival = [&] {
    CHECK_FALSE(pair.outcome);
    CHECK_FALSE(pair.at_b.bulks.at(5).result);
  };
  REQUIRE(pair.transfer(5));
  CHECK(pair.damage.arrived == 1);
  CHECK(pair.outcome->has_value());
}

TEST_CASE("session bulk: what the peer has whole is told once the bytes are not held any more (TR-4)") {
  damaged_pair pair;
  pair.source.holds = true;
  pair.damage.damages_left = 1;
  pair.a->send_bulk(pair.b->self(), 5, pair.bytes, [&](expected<void> result) {
    ++pair.done;
    pair.outcome = std::move(result);
  });
  for (std::size_t heard = 1; heard <= 2; ++heard) { // wrong, then right
    REQUIRE(pair.loop.run_until([&] { return pair.damage.arrived == heard && pair.source.held() == 1; }));
    REQUIRE(pair.b->send(pair.a->self(), std::vector<std::byte>(8))); // behind what b has found
    REQUIRE(pair.loop.run_until([&] {
      const bool checked =
          heard == 1 ? pair.counted(pair.b).arrived_wrong == 1 : pair.at_b.bulks.at(5).result.has_value();
      return checked && pair.at_a.messages.size() == heard;
    }));
    CHECK_FALSE(pair.outcome);
    pair.source.let_go();
  }
  REQUIRE(pair.loop.run_until([&] { return pair.outcome.has_value(); }));
  CHECK(pair.outcome->has_value());
  CHECK(pair.done == 1);
  CHECK(pair.damage.arrived == 2);
  CHECK(pair.at_b.bulks.at(5).bytes == pair.bytes);
}

TEST_CASE("session bulk: closed while it is checked, each side is told once (TR-3)") {
  damaged_pair pair;
  pair.damage.on_arrival = [&] { pair.loop.queue.post([&] { pair.b->close(pair.a->self()); }); };
  REQUIRE(pair.transfer(5));
  CHECK(pair.done == 1);
  CHECK_FALSE(*pair.outcome);
  CHECK_FALSE(*pair.at_b.bulks.at(5).result);
}

// In virtual time. The first try of a transfer is cut short while its path stays; what becomes of the later
// ones, a test says.
struct refused_pair {
  driver world;
  executor& loop{world.make_executor()};
  loopback_hub hub{loop};
  std::unique_ptr<transport> below_a{hub.open(incarnation_id{1, 1})}, below_b{hub.open(incarnation_id{2, 2})};
  damaging_transport source{*below_a};
  session_transport a{loop, world, source}, b{loop, world, *below_b};
  recording_listener at_a, at_b;
  std::vector<std::byte> bytes = std::vector<std::byte>(1000, std::byte{7});
  std::vector<time_point> tries;
  std::optional<expected<void>> outcome;

  explicit refused_pair(std::size_t refusals) {
    a.set_listener(&at_a);
    b.set_listener(&at_b);
    (void)a.connect(b.self(), b.local_address());
    (void)a.send(b.self(), std::vector<std::byte>(8));
    world.settle();
    source.instead = [this, refusals]() -> std::optional<error> {
      tries.push_back(world.now());
      if (tries.size() == 1) return error{errc::path_lost, "cut by the test"};
      if (tries.size() <= 1 + refusals) return error{errc::refused, "no room now"};
      return std::nullopt;
    };
    a.send_bulk(b.self(), 5, bytes, [this](expected<void> result) { outcome = std::move(result); });
  }
  // Between one try and the next, from the first refusal on.
  [[nodiscard]] std::vector<duration> pauses() const {
    std::vector<duration> all;
    for (std::size_t i = 2; i < tries.size(); ++i)
      all.push_back(tries[i] - tries[i - 1]);
    return all;
  }
};

TEST_CASE(
    "session bulk: what is refused for the moment is tried again after pauses that double up to a bound, "
    "ten seconds in all (SE-5)") {
  refused_pair pair{100'000};
  REQUIRE(pair.tries.size() == 1);
  pair.world.advance(std::chrono::minutes{1});
  REQUIRE(pair.outcome);
  REQUIRE_FALSE(*pair.outcome);
  CHECK(pair.outcome->failure().code == errc::refused);
  CHECK(pair.tries[1] - pair.tries[0] == limits::session_refusal_pause_min); // not refused: cut short

  const auto pauses = pair.pauses();
  auto expected = limits::session_refusal_pause_min;
  duration total{0};
  for (std::size_t i = 0; i < pauses.size(); ++i) {
    CAPTURE(i);
    const auto left = limits::session_refusal_patience - total;
    CHECK(pauses[i] == std::min(expected, left));
    expected = std::min(2 * expected, limits::session_refusal_pause_max);
    total += pauses[i];
  }
  CHECK(total == std::chrono::seconds{10});
  CHECK(pauses.size() == 44); // 10, 20, 40, 80, 160, 38 of 250 ms, and what is left
  CHECK(pair.a.counters().transfers_again == 45);
  CHECK(pair.at_b.bulks_announced == 0);
  pair.world.advance(std::chrono::minutes{1});
  CHECK(pair.tries.size() == 46); // it is over
}

TEST_CASE("session bulk: what is taken at a later try arrives, and is handed up once (SE-5)") {
  for (const std::size_t refusals : {1U, 4U, 44U}) {
    CAPTURE(refusals);
    refused_pair pair{refusals};
    pair.world.advance(std::chrono::minutes{1});
    REQUIRE(pair.outcome);
    CHECK(pair.outcome->has_value());
    CHECK(pair.tries.size() == 2 + refusals);
    CHECK(pair.at_b.bulks_announced == 1);
    CHECK(pair.at_b.bulks.at(5).bytes == pair.bytes);
    CHECK(pair.at_b.bulks.at(5).result->has_value());
  }
}

} // namespace
} // namespace troupe::test
