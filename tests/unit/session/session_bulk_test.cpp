// Bulk over sessions whose paths damage it, or are cut while it is checked.
#include <algorithm>
#include <optional>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include "runtime/base/digest.hpp"
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

} // namespace
} // namespace troupe::test
