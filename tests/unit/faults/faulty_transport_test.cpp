// The faulty transport over simulated ones: cuts, clogs, broken paths (TR-1 to TR-5, FY-1, FY-2, HQ-1, HQ-2).
#include <cstring>
#include <memory>
#include <optional>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include "runtime/base/limits.hpp"
#include "runtime/faults/faulty_transport.hpp"
#include "runtime/faults/limits.hpp"
#include "runtime/sim/sim_network.hpp"
#include "tests/support/recording_listener.hpp"

namespace troupe {
namespace {

using namespace std::chrono_literals;
using test::recording_listener;

constexpr std::uint64_t plenty = 100'000;

struct idle_program final : sim_program {};

std::vector<std::byte> numbered(std::uint32_t number, std::size_t bytes = 4) {
  std::vector<std::byte> payload(bytes);
  std::memcpy(payload.data(), &number, sizeof number);
  return payload;
}
std::uint32_t number_of(const recording_listener::message& message) {
  std::uint32_t number = 0;
  std::memcpy(&number, message.payload.data(), sizeof number);
  return number;
}

// `a` speaks through a faulty transport, `b` through a sound one.
struct pair {
  pair() {
    for (auto* one : {&a, &b}) {
      one->process = &world.start({}, 0ns, [](sim_process&) { return std::make_unique<idle_program>(); });
      one->end = network.make_transport(*one->process, random_id_from<incarnation_id>(one->process->random));
    }
    settle();
    switches = std::make_unique<fault_switches>(a.process->clock);
    faulty = std::make_unique<faulty_transport>(*a.end, a.process->clock, *switches, b.end->self());
    faulty->set_listener(&a.heard);
    b.end->set_listener(&b.heard);
    REQUIRE(faulty->connect(b.end->self(), b.end->local_address()));
    settle();
  }
  void settle() {
    (void)world.run_until([] { return false; }, plenty);
  }
  void pass(duration time) {
    const auto end = world.now() + time;
    bool there = false;
    world.after(time, [&there] { there = true; });
    REQUIRE(world.run_until([&there] { return there; }, plenty));
    REQUIRE(world.now() >= end);
  }
  void strike(const char* spec) { switches->turn_on(parse_fault(spec).value()); }
  void say(std::uint32_t number) { REQUIRE(faulty->send(b.end->self(), numbered(number))); }
  void answer(std::uint32_t number) { REQUIRE(b.end->send(a.end->self(), numbered(number))); }
  [[nodiscard]] static std::vector<std::uint32_t> numbers(const recording_listener& heard) {
    std::vector<std::uint32_t> out;
    for (const auto& one : heard.messages)
      out.push_back(number_of(one));
    return out;
  }

  struct one_end {
    sim_process* process{nullptr};
    std::unique_ptr<transport> end;
    recording_listener heard;
  };
  sim_world world{1};
  sim_network network{world};
  one_end a, b;
  std::unique_ptr<fault_switches> switches;
  std::unique_ptr<faulty_transport> faulty;
};

using list = std::vector<std::uint32_t>;

TEST_CASE("faulty transport: without a fault everything passes at once, both ways (FY-1)") {
  pair ends;
  ends.say(1);
  ends.answer(2);
  ends.settle();
  CHECK(pair::numbers(ends.b.heard) == list{1});
  CHECK(pair::numbers(ends.a.heard) == list{2});
  CHECK(ends.world.now().time_since_epoch() < 20ms);
}

TEST_CASE("faulty transport: what a cut holds back arrives after it, in order, aligned (FY-2, HQ-1)") {
  pair ends;
  ends.strike("cut:worker=0@step=1,for=300ms");
  for (std::uint32_t i = 0; i < 50; ++i) {
    ends.say(i);
    ends.answer(100 + i);
  }
  ends.pass(290ms);
  CHECK(ends.a.heard.messages.empty());
  CHECK(ends.b.heard.messages.empty());
  ends.pass(9900us); // the cut is about to end: what comes now waits its turn
  ends.say(50);
  ends.answer(150);
  ends.settle();
  list said(51), answered(51);
  for (std::uint32_t i = 0; i <= 50; ++i)
    said[i] = i, answered[i] = 100 + i;
  CHECK(pair::numbers(ends.b.heard) == said);
  CHECK(pair::numbers(ends.a.heard) == answered);
  for (const auto& one : ends.a.heard.messages)
    CHECK(one.aligned);
}

TEST_CASE("faulty transport: a cut of one way leaves the other open") {
  pair in;
  in.strike("cut:worker=0@step=1,way=in");
  in.say(1);
  in.answer(2);
  in.settle();
  CHECK(pair::numbers(in.b.heard) == list{1});
  CHECK(in.a.heard.messages.empty());
  pair out;
  out.strike("cut:worker=0@step=1,way=out");
  out.say(1);
  out.answer(2);
  out.settle();
  CHECK(out.b.heard.messages.empty());
  CHECK(pair::numbers(out.a.heard) == list{2});
}

TEST_CASE("faulty transport: a second cut keeps back what the first one has held (HQ-1)") {
  pair ends;
  ends.strike("cut:worker=0@step=1,for=100ms");
  ends.say(1);
  ends.pass(50ms);
  ends.strike("cut:worker=0@step=1,for=300ms");
  ends.pass(200ms);
  CHECK(ends.b.heard.messages.empty());
  ends.settle();
  CHECK(pair::numbers(ends.b.heard) == list{1});
}

TEST_CASE("faulty transport: a clog delays each message and keeps the order") {
  pair ends;
  ends.strike("clog:worker=0@step=1,for=1s,factor=40");
  ends.say(1);
  ends.pass(20ms);
  ends.say(2);
  ends.pass(19ms);
  CHECK(ends.b.heard.messages.empty());
  ends.pass(11ms);
  CHECK(pair::numbers(ends.b.heard) == list{1});
  ends.settle();
  CHECK(pair::numbers(ends.b.heard) == list{1, 2});
}

TEST_CASE(
    "faulty transport: a transfer that arrives during a cut is handed over whole after it (TR-1, TR-3)") {
  pair ends;
  const auto bytes = numbered(7, 5000);
  std::optional<expected<void>> sent;
  ends.strike("cut:worker=0@step=1,for=200ms,way=in");
  ends.answer(1);
  ends.b.end->send_bulk(ends.a.end->self(), 9, bytes, [&](expected<void> done) { sent = std::move(done); });
  ends.pass(150ms);
  CHECK(ends.a.heard.bulks_announced == 0);
  ends.settle();
  CHECK(pair::numbers(ends.a.heard) == list{1});
  REQUIRE(ends.a.heard.bulks.contains(9));
  CHECK(ends.a.heard.bulks[9].bytes == bytes);
  CHECK(ends.a.heard.bulks[9].result->has_value());
  REQUIRE(sent);
  CHECK(*sent);
}

TEST_CASE("faulty transport: what is held back keeps announcements in their place among messages (TR-5)") {
  for (const auto* fault :
       {"cut:worker=0@step=1,for=200ms,way=in", "clog:worker=0@step=1,for=200ms,factor=40"}) {
    pair ends;
    const auto bytes = numbered(7, 5000);
    std::vector<std::size_t> announced;
    ends.a.heard.then = [&](incarnation_id, std::span<const std::byte>) {
      announced.push_back(ends.a.heard.bulks_announced);
    };
    ends.strike(fault);
    for (std::uint32_t i = 0; i < 3; ++i) {
      ends.answer(i);
      ends.b.end->send_bulk(ends.a.end->self(), 9 + i, bytes, [](const expected<void>&) {});
    }
    ends.answer(3);
    ends.settle();
    CHECK(announced == std::vector<std::size_t>{0, 1, 2, 3});
    CHECK(ends.a.heard.bulks[11].bytes == bytes);
  }
}

TEST_CASE("faulty transport: a transfer sent during a cut waits, and is answered once (TR-3)") {
  pair ends;
  const auto bytes = numbered(7, 5000);
  int answers = 0;
  ends.strike("cut:worker=0@step=1,for=200ms,way=out");
  ends.faulty->send_bulk(ends.b.end->self(), 9, bytes,
                         [&](expected<void> done) { answers += done ? 1 : 100; });
  ends.pass(150ms);
  CHECK(ends.b.heard.bulks_announced == 0);
  ends.settle();
  CHECK(ends.b.heard.bulks[9].bytes == bytes);
  CHECK(answers == 1);
}

TEST_CASE(
    "faulty transport: a close drops what is held of that peer, and answers its transfers (TR-2, HQ-2)") {
  pair ends;
  const auto bytes = numbered(7, 5000);
  std::optional<expected<void>> sent;
  ends.strike("cut:worker=0@step=1,for=200ms");
  ends.answer(1);
  ends.faulty->send_bulk(ends.b.end->self(), 9, bytes, [&](expected<void> done) { sent = std::move(done); });
  ends.pass(50ms);
  ends.faulty->close(ends.b.end->self());
  REQUIRE(sent);
  CHECK(sent->failure().code == errc::path_lost);
  ends.settle();
  CHECK(ends.a.heard.messages.empty());
}

TEST_CASE("faulty transport: more than the limit is refused outwards, and breaks the path inwards (HQ-2)") {
  pair ends;
  ends.strike("cut:worker=0@step=1");
  const auto large = numbered(1, limits::envelope_bytes_max);
  const auto fit = limits::held_bytes_max / large.size();
  for (std::size_t i = 0; i < fit; ++i)
    REQUIRE(ends.faulty->send(ends.b.end->self(), large));
  CHECK(ends.faulty->send(ends.b.end->self(), large).failure().code == errc::no_credit);
  CHECK(ends.a.heard.losses.empty());
  for (std::size_t i = 0; i <= fit; ++i) {
    REQUIRE(ends.b.end->send(ends.a.end->self(), large));
    ends.settle();
  }
  ends.settle();
  CHECK(ends.a.heard.messages.empty());
  CHECK(ends.b.heard.losses.size() == 1);
}

TEST_CASE("faulty transport: a path error breaks the path to that one peer, once, and not inside a call") {
  pair ends;
  ends.strike("path-error:worker=0@step=1");
  CHECK_FALSE(ends.faulty->send(ends.b.end->self(), numbered(1)));
  CHECK(ends.a.heard.losses.empty());
  ends.answer(2);
  ends.settle();
  REQUIRE(ends.a.heard.losses.size() == 1);
  CHECK(ends.a.heard.losses[0].who == ends.b.end->self());
  CHECK(ends.a.heard.losses[0].cause.code == errc::path_lost);
  CHECK(ends.a.heard.handed_up_after_loss == 0); // TR-2
  CHECK(ends.b.heard.losses.size() == 1);        // the other side notices
  CHECK(ends.b.heard.messages.empty());
}

TEST_CASE(
    "faulty transport: a path that follows a lost one carries nothing before the loss was told (FY-3)") {
  pair ends;
  ends.strike("cut:worker=0@step=1,for=300ms,way=in"); // the loss is held back as messages are
  ends.strike("path-error:worker=0@step=1");
  const auto there = ends.b.end->self();
  CHECK_FALSE(ends.faulty->send(there, numbered(1)));
  ends.pass(100ms);
  CHECK(ends.b.heard.losses.size() == 1);
  REQUIRE(ends.b.end->connect(ends.a.end->self(), ends.a.end->local_address()));
  ends.pass(100ms);
  CHECK(ends.a.heard.losses.empty());
  CHECK(ends.faulty->send(there, numbered(2)).failure().code == errc::path_lost);
  std::optional<expected<void>> outcome;
  ends.faulty->send_bulk(there, 1, numbered(3), [&](expected<void> result) { outcome = std::move(result); });
  REQUIRE(outcome);
  CHECK(outcome->failure().code == errc::path_lost);
  ends.settle();
  CHECK(ends.a.heard.losses.size() == 1);
  ends.say(4);
  ends.settle();
  CHECK(pair::numbers(ends.b.heard) == list{4});
}

} // namespace
} // namespace troupe
