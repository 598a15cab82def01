// Sessions over real and loopback paths that are cut on purpose.
#include <algorithm>
#include <cstring>
#include <vector>

#include <catch2/catch_template_test_macros.hpp>
#include <catch2/catch_test_macros.hpp>

#include "runtime/base/counter_rng.hpp"
#include "tests/support/allocation_count.hpp"
#include "tests/support/transport_pairs.hpp"

namespace troupe::test {
namespace {

std::vector<std::byte> numbered(std::uint32_t number, std::size_t bytes = sizeof(std::uint32_t)) {
  std::vector<std::byte> payload(bytes);
  std::memcpy(payload.data(), &number, sizeof(number));
  return payload;
}
std::uint32_t number_of(std::span<const std::byte> payload) {
  std::uint32_t number = 0;
  std::memcpy(&number, payload.data(), sizeof(number));
  return number;
}
template <class Pair>
bool open_both_ways(Pair& pair) {
  pair.connect();
  (void)pair.a->send(pair.b->self(), numbered(0));
  if (!pair.loop.run_until([&] { return pair.at_b.messages.size() == 1; })) return false;
  (void)pair.b->send(pair.a->self(), numbered(0));
  return pair.loop.run_until([&] { return pair.at_a.messages.size() == 1; });
}

// Cuts the path under `from` without a word, as a broken connection would be.
template <class Pair>
void cut(Pair& pair, bool at_a) {
  auto& below = at_a ? *pair.below_a : *pair.below_b;
  const auto peer = at_a ? pair.b->self() : pair.a->self();
  auto& above = static_cast<session_transport&>(at_a ? *pair.a : *pair.b);
  below.drop(peer);
  above.break_path(peer, {errc::path_lost, "cut by the test"});
}

TEMPLATE_TEST_CASE("session: a stream survives cuts on either side: all of it, in order, once (SE-1, SE-2)",
                   "", session_loopback_pair, session_ucx_pair) {
  TestType pair;
  const counter_rng random{99, 1};
  REQUIRE(open_both_ways(pair));
  const std::uint32_t count = 3000;
  const std::uint32_t cuts = 12;
  std::uint32_t sent_a = 1;
  std::uint32_t sent_b = 1;
  std::uint32_t made = 0;
  const auto feed = [&](transport& from, incarnation_id to, std::uint32_t& sent, std::uint64_t salt) {
    for (int burst = 0; burst < 10 && sent < count; ++burst) {
      if (!from.send(to, numbered(sent, 4 + random.bits(salt + sent) % 3000))) return; // no credit now
      ++sent;
    }
  };
  REQUIRE(pair.loop.run_until(
      [&] {
        feed(*pair.a, pair.b->self(), sent_a, 0);
        feed(*pair.b, pair.a->self(), sent_b, 1'000'000);
        if (made < cuts && pair.at_b.messages.size() > (made + 1) * (count / (cuts + 1)))
          cut(pair, ++made % 2 == 0);
        return pair.at_a.messages.size() >= count && pair.at_b.messages.size() >= count;
      },
      std::chrono::seconds{60}));
  for (std::uint32_t i = 0; i < count; ++i) {
    REQUIRE(number_of(pair.at_a.messages[i].payload) == i);
    REQUIRE(number_of(pair.at_b.messages[i].payload) == i);
  }
  CHECK(pair.at_a.messages.size() == count);
  CHECK(pair.at_b.messages.size() == count);
  CHECK(pair.at_a.losses.empty());
  CHECK(pair.at_b.losses.empty());
  CHECK(made == cuts);
  CHECK(pair.counted_a().bridged + pair.counted_b().bridged >= cuts);
  CHECK(pair.counted_a().malformed + pair.counted_b().malformed == 0);
}

TEMPLATE_TEST_CASE("session: bulk that a cut interrupts begins again and arrives once (SE-5, TR-3)", "",
                   session_loopback_pair, session_ucx_pair) {
  TestType pair;
  REQUIRE(open_both_ways(pair));
  std::vector<std::byte> bytes(24U << 20);
  for (std::size_t i = 0; i < bytes.size(); ++i)
    bytes[i] = static_cast<std::byte>((i * 2654435761U) >> 13U);
  int done = 0;
  std::optional<expected<void>> outcome;
  pair.a->send_bulk(pair.b->self(), 5, bytes, [&](expected<void> result) {
    ++done;
    outcome = std::move(result);
  });
  int cuts = 0;
  REQUIRE(pair.loop.run_until([&] {
    if (pair.at_b.bulks_announced > 0 && cuts < 3 && done == 0) cut(pair, ++cuts % 2 == 0);
    return done > 0 && pair.at_b.bulks.at(5).result.has_value();
  }));
  CHECK(cuts == 3);
  CHECK(done == 1);
  CAPTURE(*outcome ? std::string{} : outcome->failure().text);
  CHECK(outcome->has_value());
  CHECK(pair.at_b.bulks_announced == 1);
  CHECK(pair.at_b.bulks.at(5).result->has_value());
  CHECK(pair.at_b.bulks.at(5).bytes == bytes);
  CHECK(pair.counted_a().malformed + pair.counted_b().malformed == 0);
}

// How many tasks of the loop ran before the cut: false, there were not as many.
template <class Pair>
bool bulk_survives_a_cut_after(int tasks, bool at_a) {
  Pair pair;
  REQUIRE(open_both_ways(pair));
  const std::vector<std::byte> bytes(8U << 20, std::byte{5});
  std::optional<expected<void>> outcome;
  pair.a->send_bulk(pair.b->self(), 5, bytes, [&](expected<void> result) { outcome = std::move(result); });
  for (int ran = 0; ran < tasks && !outcome; ++ran)
    pair.loop.context.run_one();
  const bool early = !outcome;
  if (early) cut(pair, at_a);
  REQUIRE(
      pair.loop.run_until([&] { return outcome.has_value() && pair.at_b.bulks.at(5).result.has_value(); }));
  CAPTURE(tasks, at_a, *outcome ? std::string{} : outcome->failure().text);
  CHECK(outcome->has_value());
  CHECK(pair.at_b.bulks_announced == 1);
  return early;
}

TEMPLATE_TEST_CASE("session: bulk that is cut at any moment arrives once, also while digests are compared "
                   "(SE-5, SE-6)",
                   "", session_loopback_pair, session_ucx_pair) {
  for (const bool at_a : {true, false}) {
    int tasks = 0;
    while (bulk_survives_a_cut_after<TestType>(tasks, at_a))
      ++tasks;
    CHECK(tasks > 20);
  }
}

TEMPLATE_TEST_CASE("session: a peer that is gone is told soon, with every message it may not have (SE-2)", "",
                   session_loopback_pair, session_ucx_pair) {
  TestType pair;
  REQUIRE(open_both_ways(pair));
  const auto gone = pair.b->self();
  cut(pair, true); // what follows waits for a path
  for (std::uint32_t i = 1; i <= 50; ++i)
    REQUIRE(pair.a->send(gone, numbered(i)));
  REQUIRE(pair.a->send_urgent(gone, numbered(51)));
  pair.b->set_listener(nullptr);
  pair.b.reset();
  pair.below_b.reset(); // the process has ended
  REQUIRE(pair.loop.run_until([&] { return !pair.at_a.losses.empty(); }));
  CHECK(pair.at_a.losses.size() == 1);
  CHECK(pair.at_a.undelivered.size() == 51);
  for (std::uint32_t i = 0; i < 50; ++i)
    CHECK(number_of(pair.at_a.undelivered[i]) == i + 1);
  CHECK(pair.a->send(gone, numbered(99)).failure().code == errc::path_lost);
  CHECK(pair.a->connect(gone, pair.a->local_address()).failure().code == errc::path_lost); // SE-4
  CHECK(pair.at_a.handed_up_after_loss == 0);
}

TEMPLATE_TEST_CASE("session: what is kept for a peer is bounded; it goes on when there is a path (SE-3)", "",
                   session_loopback_pair, session_ucx_pair) {
  TestType pair;
  REQUIRE(open_both_ways(pair));
  cut(pair, true);
  std::uint32_t taken = 0;
  auto outcome = pair.a->send(pair.b->self(), numbered(1, 10'000));
  for (; outcome; outcome = pair.a->send(pair.b->self(), numbered(++taken + 1, 10'000))) {
  }
  CHECK(outcome.failure().code == errc::no_credit);
  CHECK(taken * 10'000 <= pair_in_flight_bytes_max);
  CHECK(pair.a->send_urgent(pair.b->self(), numbered(1000))); // has a window of its own
  REQUIRE(pair.loop.run_until([&] { return pair.at_b.messages.size() == taken + 2; }));
  CHECK(number_of(pair.at_b.messages[1].payload) == 1000); // in front of the others
  CHECK(pair.loop.run_until([&] { return pair.a->send(pair.b->self(), numbered(2, 10'000)).has_value(); }));
}

TEST_CASE("session: messages of one turn leave together") {
  session_loopback_pair pair;
  REQUIRE(open_both_ways(pair));
  const auto before = pair.counted_a().batches_sent;
  for (std::uint32_t i = 0; i < 100; ++i)
    REQUIRE(pair.a->send(pair.b->self(), numbered(i, 32)));
  REQUIRE(pair.loop.run_until([&] { return pair.at_b.messages.size() == 101; }));
  CHECK(pair.counted_a().batches_sent == before + 1);
}

TEST_CASE("session: a path that stays away for too long is given up, once") {
  session_loopback_pair pair{session_settings{.bridge_for = std::chrono::milliseconds{100}}};
  REQUIRE(open_both_ways(pair));
  pair.below_b->set_listener(nullptr); // hears nothing any more, and answers nothing
  cut(pair, true);
  REQUIRE(pair.a->send(pair.b->self(), numbered(1)));
  REQUIRE(pair.loop.run_until([&] { return !pair.at_a.losses.empty(); }));
  CHECK(pair.at_a.losses.front().cause.code == errc::path_lost);
  CHECK(pair.at_a.undelivered.size() == 1);
  CHECK(pair.counted_a().given_up == 1);
}

TEST_CASE("session: frames that break the rules are counted; the stream goes on whole") {
  session_loopback_pair pair;
  REQUIRE(open_both_ways(pair));
  const auto as_frame = [](session_header header) {
    const auto bytes = std::as_bytes(std::span{&header, 1});
    return std::vector<std::byte>{bytes.begin(), bytes.end()};
  };
  const auto to = pair.b->self();
  (void)pair.below_a->send(to, numbered(3)); // no frame
  (void)pair.below_a->send(
      to, as_frame({session_magic, session_kind::batch, session_lane_id::ordinary, 1, 9, {1, 0}})); // a gap
  (void)pair.below_a->send(
      to,
      as_frame({session_magic, session_kind::ack, session_lane_id::ordinary, 0, 0, {77, 0}})); // never sent
  for (std::uint32_t i = 1; i <= 20; ++i)
    REQUIRE(pair.a->send(to, numbered(i)));
  REQUIRE(pair.loop.run_until([&] { return pair.at_b.messages.size() == 21; }));
  for (std::uint32_t i = 0; i <= 20; ++i)
    CHECK(number_of(pair.at_b.messages[i].payload) == i);
  CHECK(pair.counted_b().malformed >= 2);
  CHECK(pair.at_b.losses.empty());
}

class counting_listener final : public transport_listener {
public:
  std::size_t messages{0};
  void on_message(incarnation_id, std::span<const std::byte>) override { ++messages; }
  std::span<std::byte> on_bulk_announced(incarnation_id, const bulk_announcement&) override { return {}; }
  void on_bulk_received(incarnation_id, std::uint64_t, expected<void>) override {}
  void on_path_lost(incarnation_id, const error&) override {}
};

TEST_CASE("session: batches in the steady state allocate nothing (SB-1)") {
  session_ucx_pair pair;
  REQUIRE(open_both_ways(pair));
  counting_listener counting;
  pair.b->set_listener(&counting);
  const auto payload = numbered(1, 100);
  const auto pass = [&](std::size_t rounds) {
    for (std::size_t i = 0; i < rounds; ++i) {
      const auto goal = counting.messages + 32;
      for (int k = 0; k < 32; ++k)
        (void)pair.a->send(pair.b->self(), payload);
      while (counting.messages < goal)
        pair.loop.context.run_one();
    }
  };
  pass(600);
  const auto before = allocations_so_far();
  pass(1000);
  // A timer now and then (acknowledgements), and the chunks of the queue of kept batches.
  CHECK(allocations_so_far() - before < 1000 * 32 / 100);
}

} // namespace
} // namespace troupe::test
