// What every transport promises (TR-1 .. TR-5), asked of each of them.
#include <algorithm>
#include <cstring>

#include <catch2/catch_template_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include "runtime/base/limits.hpp"
#include "tests/support/transport_pairs.hpp"

namespace troupe::test {
namespace {

std::vector<std::byte> numbered(std::uint32_t number, std::size_t bytes = sizeof(std::uint32_t)) {
  std::vector<std::byte> payload(bytes);
  std::memcpy(payload.data(), &number, sizeof(number));
  return payload;
}
std::uint32_t number_of(const recording_listener::message& message) {
  std::uint32_t number = 0;
  std::memcpy(&number, message.payload.data(), sizeof(number));
  return number;
}
std::vector<std::byte> pattern(std::size_t bytes) {
  std::vector<std::byte> made(bytes);
  for (std::size_t i = 0; i < bytes; ++i)
    made[i] = static_cast<std::byte>((i * 2654435761U) >> 11U);
  return made;
}

TEMPLATE_TEST_CASE("transport: messages arrive in order, once, aligned, whatever their size (TR-1)", "",
                   loopback_pair, ucx_pair, session_loopback_pair, session_ucx_pair) {
  TestType pair;
  pair.connect();
  const std::vector<std::size_t> sizes{
      4, 8, 91, 1000, 8185, 9000, 20'553, 65'536, limits::envelope_bytes_max};
  const std::uint32_t count = 2000;
  std::uint32_t sent = 0;
  const auto feed = [&] { // as far as there is credit
    while (sent < count) {
      const auto outcome = pair.a->send(pair.b->self(), numbered(sent, sizes[sent % sizes.size()]));
      if (!outcome) {
        CHECK(outcome.failure().code == errc::no_credit);
        return;
      }
      ++sent;
    }
  };
  REQUIRE(pair.loop.run_until([&] {
    feed();
    return pair.at_b.messages.size() == count;
  }));
  for (std::uint32_t i = 0; i < count; ++i) {
    const auto& message = pair.at_b.messages[i];
    CHECK(number_of(message) == i);
    CHECK(message.payload.size() == sizes[i % sizes.size()]);
    CHECK(message.aligned);
    CHECK(message.from == pair.a->self());
  }
}

TEMPLATE_TEST_CASE("transport: whoever was connected to can answer", "", loopback_pair, ucx_pair,
                   session_loopback_pair, session_ucx_pair) {
  TestType pair;
  pair.connect();
  REQUIRE(pair.a->connect(pair.b->self(), pair.b->local_address())); // idempotent
  pair.at_b.then = [&](incarnation_id from, std::span<const std::byte> payload) {
    CHECK(pair.b->send(from, payload));
  };
  REQUIRE(pair.a->send(pair.b->self(), numbered(7)));
  REQUIRE(pair.loop.run_until([&] { return pair.at_a.messages.size() == 1; }));
  CHECK(number_of(pair.at_a.messages.front()) == 7);
}

TEMPLATE_TEST_CASE("transport: both may connect at once", "", loopback_pair, ucx_pair, session_loopback_pair,
                   session_ucx_pair) {
  TestType pair;
  pair.connect();
  REQUIRE(pair.b->connect(pair.a->self(), pair.a->local_address()));
  REQUIRE(pair.a->send(pair.b->self(), numbered(1)));
  REQUIRE(pair.b->send(pair.a->self(), numbered(2)));
  REQUIRE(pair.loop.run_until([&] { return pair.at_a.messages.size() + pair.at_b.messages.size() == 2; }));
  CHECK(pair.at_a.losses.empty());
}

TEMPLATE_TEST_CASE("transport: a message above the limit is too large, an unknown peer has no path", "",
                   loopback_pair, ucx_pair, session_loopback_pair, session_ucx_pair) {
  TestType pair;
  pair.connect();
  const std::vector<std::byte> large(limits::payload_bytes_max + 1);
  CHECK(pair.a->send(pair.b->self(), large).failure().code == errc::too_large);
  CHECK(pair.a->send(pair.fresh(), numbered(1)).failure().code == errc::path_lost);
  CHECK_FALSE(pair.a->connect(pair.a->self(), pair.a->local_address()));
}

TEMPLATE_TEST_CASE("transport: bytes under way are bounded; the sender is told", "", loopback_pair, ucx_pair,
                   session_loopback_pair, session_ucx_pair) {
  TestType pair;
  pair.connect(); // nothing leaves before the loop runs
  std::size_t accepted = 0;
  const auto payload = numbered(0, limits::envelope_bytes_max / 2);
  auto outcome = pair.a->send(pair.b->self(), payload);
  for (; outcome; outcome = pair.a->send(pair.b->self(), payload))
    ++accepted;
  CHECK(outcome.failure().code == errc::no_credit);
  CHECK(accepted * payload.size() <= pair_in_flight_bytes_max);
  CHECK((accepted + 2) * payload.size() > pair_in_flight_bytes_max);
  REQUIRE(pair.loop.run_until([&] { return pair.at_b.messages.size() == accepted; }));
  CHECK(pair.loop.run_until([&] { return pair.a->send(pair.b->self(), payload).has_value(); }));
}

TEMPLATE_TEST_CASE("transport: a goodbye comes after the messages, once, and nothing after it (TR-2)", "",
                   loopback_pair, ucx_pair, session_loopback_pair, session_ucx_pair) {
  TestType pair;
  pair.connect();
  REQUIRE(pair.a->send(pair.b->self(), numbered(0)));
  REQUIRE(pair.loop.run_until([&] { return pair.at_b.messages.size() == 1; }));
  for (std::uint32_t i = 1; i < 10; ++i)
    REQUIRE(pair.a->send(pair.b->self(), numbered(i)));
  pair.a->close(pair.b->self());
  pair.a->close(pair.b->self()); // again: ignored
  CHECK(pair.a->send(pair.b->self(), numbered(99)).failure().code == errc::path_lost);
  (void)pair.b->send(pair.a->self(), numbered(98)); // meets a closed end
  REQUIRE(pair.loop.run_until([&] { return !pair.at_b.losses.empty(); }));
  CHECK(pair.at_b.messages.size() == 10);
  CHECK(pair.at_b.losses.front().cause.code == errc::actor_stopped);
  CHECK(pair.b->send(pair.a->self(), numbered(97)).failure().code == errc::path_lost);
  CHECK(pair.a->connect(pair.b->self(), pair.b->local_address()).failure().code == errc::path_lost);
  pair.loop.context.poll();
  CHECK(pair.at_a.messages.empty());
  CHECK(pair.at_a.losses.empty());
  CHECK(pair.at_b.losses.size() == 1);
  CHECK(pair.at_b.handed_up_after_loss == 0);
}

TEMPLATE_TEST_CASE(
    "transport: a path that is closed before it is open still says goodbye, after the messages", "",
    loopback_pair, ucx_pair, session_loopback_pair, session_ucx_pair) {
  TestType pair;
  pair.connect();
  if (GENERATE(true, false)) REQUIRE(pair.b->connect(pair.a->self(), pair.a->local_address()));
  REQUIRE(pair.a->send(pair.b->self(), numbered(7)));
  pair.a->close(pair.b->self()); // the loop has not run yet
  REQUIRE(pair.loop.run_until([&] { return !pair.at_b.losses.empty(); }));
  CHECK(pair.at_b.losses.front().cause.code == errc::actor_stopped);
  CHECK(pair.at_b.messages.size() == 1);
  CHECK(pair.at_b.losses.size() == 1);
  CHECK(pair.at_a.losses.empty());
}

TEMPLATE_TEST_CASE("transport: an end that is destroyed is a loss to the other", "", loopback_pair, ucx_pair,
                   session_loopback_pair, session_ucx_pair) {
  TestType pair;
  pair.connect();
  REQUIRE(pair.a->send(pair.b->self(), numbered(0)));
  REQUIRE(pair.loop.run_until([&] { return pair.at_b.messages.size() == 1; }));
  std::vector<std::byte> source(std::size_t{1} << 20U);
  unsigned completions = 0;
  pair.b->send_bulk(pair.a->self(), 1, source, [&](const expected<void>& result) {
    ++completions;
    CHECK_FALSE(result);
  });
  pair.destroy(pair.a);
  REQUIRE(pair.loop.run_until([&] { return !pair.at_b.losses.empty() && completions == 1; }));
  CHECK(pair.at_b.losses.size() == 1);
}

TEMPLATE_TEST_CASE("transport: what nobody answers to is a lost path", "", loopback_pair, ucx_pair,
                   session_loopback_pair, session_ucx_pair) {
  TestType pair;
  const auto gone = pair.b->self();
  const auto address = pair.b->local_address();
  pair.destroy(pair.b);
  REQUIRE(pair.a->connect(gone, address));
  REQUIRE(pair.loop.run_until([&] { return pair.at_a.losses.size() == 1; }));
  const auto code = pair.at_a.losses.front().cause.code;
  CHECK((code == errc::path_lost || code == errc::refused));
}

TEMPLATE_TEST_CASE("transport: bulk goes both ways at once, with messages between (TR-3)", "", loopback_pair,
                   ucx_pair, session_loopback_pair, session_ucx_pair) {
  TestType pair;
  pair.connect();
  const auto there = pattern((std::size_t{5} << 20U) + 13);
  const auto back = pattern(4097);
  unsigned completions = 0;
  const auto count = [&](const expected<void>& result) { completions += result ? 1U : 100U; };
  pair.a->send_bulk(pair.b->self(), 1, there, count);
  REQUIRE(pair.a->send(pair.b->self(), numbered(1)));
  REQUIRE(pair.loop.run_until([&] { return pair.at_b.messages.size() == 1; }));
  pair.b->send_bulk(pair.a->self(), 1, back, count);
  REQUIRE(pair.loop.run_until([&] { return completions == 2; }));
  REQUIRE(pair.at_b.bulks.at(1).result);
  CHECK(*pair.at_b.bulks.at(1).result);
  CHECK(pair.at_b.bulks.at(1).bytes == there);
  CHECK(pair.at_a.bulks.at(1).bytes == back);
}

TEMPLATE_TEST_CASE("transport: the source may change once a transfer has completed (TR-4)", "", loopback_pair,
                   ucx_pair, session_loopback_pair, session_ucx_pair) {
  TestType pair;
  pair.connect();
  const auto first = pattern(std::size_t{3} << 20U);
  auto source = first;
  bool complete = false;
  pair.a->send_bulk(pair.b->self(), 1, source, [&](const expected<void>& result) {
    CHECK(result);
    std::ranges::fill(source, std::byte{0});
    complete = true;
  });
  REQUIRE(pair.loop.run_until([&] { return complete && pair.at_b.bulks.at(1).result; }));
  CHECK(pair.at_b.bulks.at(1).bytes == first);
}

TEMPLATE_TEST_CASE("transport: what is sent after a transfer comes after its announcement (TR-5)", "",
                   loopback_pair, ucx_pair) {
  TestType pair;
  pair.connect();
  std::vector<std::size_t> announced;
  pair.at_b.then = [&](incarnation_id, std::span<const std::byte>) {
    announced.push_back(pair.at_b.bulks_announced);
  };
  const auto source = pattern(1'000'000);
  std::size_t done = 0;
  for (std::uint32_t round = 1; round <= 2; ++round) { // while the path is made, and when it is open
    for (std::uint32_t i = 0; i < 8; ++i) {
      pair.a->send_bulk(pair.b->self(), 8 * round + i, source, [&](const expected<void>& result) {
        CHECK(result);
        ++done;
      });
      REQUIRE(pair.a->send(pair.b->self(), numbered(i)));
    }
    REQUIRE(pair.loop.run_until([&] { return announced.size() == 8 * round && done == 8 * round; }));
  }
  for (std::size_t i = 0; i < announced.size(); ++i)
    CHECK(announced[i] > i);
}

TEMPLATE_TEST_CASE("transport: a refused transfer of many pieces may be sent again under its number", "",
                   loopback_pair, ucx_pair, session_loopback_pair, session_ucx_pair) {
  TestType pair;
  pair.connect();
  const auto source = pattern(3'000'001);
  std::vector<errc> failures;
  for (pair.at_b.accept_bulk = false; failures.size() < 3;) {
    const auto before = failures.size();
    pair.a->send_bulk(pair.b->self(), 1, source,
                      [&](const expected<void>& result) { failures.push_back(result.failure().code); });
    REQUIRE(pair.loop.run_until([&] { return failures.size() > before; }));
  }
  CHECK(failures == std::vector(3, errc::refused));
  pair.at_b.accept_bulk = true;
  bool whole = false;
  pair.a->send_bulk(pair.b->self(), 1, source,
                    [&](const expected<void>& result) { whole = result.has_value(); });
  REQUIRE(pair.loop.run_until([&] { return whole && pair.at_b.bulks.at(1).result; }));
  CHECK(pair.at_b.bulks.at(1).bytes == source);
  CHECK(pair.at_a.losses.empty());
  CHECK(pair.at_b.losses.empty());
}

TEMPLATE_TEST_CASE("transport: refused, empty and repeated transfers fail, the path lives on", "",
                   loopback_pair, ucx_pair, session_loopback_pair, session_ucx_pair) {
  TestType pair;
  pair.connect();
  pair.at_b.accept_bulk = false;
  const std::vector<std::byte> source(100'000);
  std::vector<errc> failures;
  const auto note = [&](const expected<void>& result) { failures.push_back(result.failure().code); };
  pair.a->send_bulk(pair.b->self(), 1, source, note);
  pair.a->send_bulk(pair.b->self(), 1, source, note); // under way
  pair.a->send_bulk(pair.b->self(), 2, {}, note);
  pair.a->send_bulk(pair.fresh(), 3, source, note);
  REQUIRE(pair.loop.run_until([&] { return failures.size() == 4; }));
  CHECK(failures == std::vector{errc::bad_argument, errc::bad_argument, errc::path_lost, errc::refused});
  CHECK(pair.at_b.bulks_announced == 1);
  REQUIRE(pair.a->send(pair.b->self(), numbered(1)));
  REQUIRE(pair.loop.run_until([&] { return pair.at_b.messages.size() == 1; }));
}

TEMPLATE_TEST_CASE("transport: closing in the middle of a transfer completes it on both sides (TR-3)", "",
                   loopback_pair, ucx_pair, session_loopback_pair, session_ucx_pair) {
  TestType pair;
  pair.connect();
  const bool sender_closes = GENERATE(true, false);
  const std::vector<std::byte> source(std::size_t{16} << 20U);
  unsigned completions = 0;
  pair.a->send_bulk(pair.b->self(), 1, source, [&](const expected<void>& result) {
    ++completions;
    CHECK_FALSE(result);
  });
  REQUIRE(pair.loop.run_until([&] { return pair.at_b.bulks_announced == 1; }));
  if (sender_closes)
    pair.a->close(pair.b->self());
  else
    pair.b->close(pair.a->self());
  REQUIRE(pair.loop.run_until([&] { return completions == 1 && pair.at_b.bulks.at(1).result; }));
  CHECK_FALSE(*pair.at_b.bulks.at(1).result);
  auto& other = sender_closes ? pair.at_b : pair.at_a;
  REQUIRE(pair.loop.run_until([&] { return other.losses.size() == 1; }));
  CHECK(other.losses.front().cause.code == errc::actor_stopped);
  CHECK(other.handed_up_after_loss == 0);
  CHECK(completions == 1);
}

} // namespace
} // namespace troupe::test
