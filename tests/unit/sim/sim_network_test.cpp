// The transport seam between simulated processes (TR-1 .. TR-5), joins (SN-2), the dead (SN-1).
#include <csignal>

#include <cstring>
#include <memory>
#include <optional>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include "runtime/base/limits.hpp"
#include "runtime/sim/sim_network.hpp"
#include "tests/support/recording_listener.hpp"

namespace troupe {
namespace {

using namespace std::chrono_literals;
using test::recording_listener;

constexpr std::uint64_t plenty = 100'000;

struct idle_program final : sim_program {};

// Two processes with a transport each, which the test holds.
struct pair {
  explicit pair(std::uint64_t seed = 1, sim_host_id host_of_b = 0)
      : world{seed} {
    for (auto* one : {&a, &b}) {
      one->process = &world.start(
          {}, 0ns, [](sim_process&) { return std::make_unique<idle_program>(); }, one == &b ? host_of_b : 0);
      one->end = network.make_transport(*one->process, random_id_from<incarnation_id>(one->process->random));
      one->end->set_listener(&one->heard);
    }
    settle();
  }
  void settle() {
    (void)world.run_until([] { return false; }, plenty);
  }
  bool until(const std::function<bool()>& happened) { return world.run_until(happened, plenty); }
  void connect() { REQUIRE(a.end->connect(b.end->self(), b.end->local_address())); }
  void kill_b() { world.kill(b.process->pid(), SIGKILL); }

  struct one_end {
    sim_process* process{nullptr};
    std::unique_ptr<transport> end;
    recording_listener heard;
  };
  sim_world world;
  sim_network network{world};
  one_end a, b;
};

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

TEST_CASE("sim network: messages arrive once, in order, aligned, whatever the seed (TR-1)") {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    pair ends{seed};
    ends.connect();
    for (std::uint32_t i = 0; i < 100; ++i)
      REQUIRE(ends.a.end->send(ends.b.end->self(), numbered(i, 4 + i % 13)));
    ends.settle();
    REQUIRE(ends.b.heard.messages.size() == 100);
    for (std::uint32_t i = 0; i < 100; ++i) {
      CHECK(number_of(ends.b.heard.messages[i]) == i);
      CHECK(ends.b.heard.messages[i].payload.size() == 4 + i % 13);
      CHECK(ends.b.heard.messages[i].aligned);
    }
    CHECK(ends.b.end->send(ends.a.end->self(), numbered(7))); // whoever was connected to can answer
    ends.settle();
    CHECK(ends.a.heard.messages.size() == 1);
  }
}

TEST_CASE("sim network: refuses what cannot be: too large, no path, too much under way") {
  pair ends;
  ends.connect();
  const std::vector<std::byte> large(limits::payload_bytes_max + 1);
  CHECK(ends.a.end->send(ends.b.end->self(), large).failure().code == errc::too_large);
  CHECK(ends.a.end->send({1, 2}, numbered(1)).failure().code == errc::path_lost);
  CHECK_FALSE(ends.a.end->connect(ends.a.end->self(), ends.a.end->local_address()));
  const auto half = numbered(0, limits::envelope_bytes_max / 2);
  auto sent = ends.a.end->send(ends.b.end->self(), half);
  while (sent)
    sent = ends.a.end->send(ends.b.end->self(), half);
  CHECK(sent.failure().code == errc::no_credit);
  ends.settle();
  CHECK(ends.a.end->send(ends.b.end->self(), half));
}

TEST_CASE("sim network: a goodbye comes after the messages, once, and nothing after it (TR-2)") {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    pair ends{seed};
    ends.connect();
    for (std::uint32_t i = 0; i < 10; ++i)
      REQUIRE(ends.a.end->send(ends.b.end->self(), numbered(i)));
    ends.a.end->close(ends.b.end->self());
    CHECK(ends.a.end->send(ends.b.end->self(), numbered(99)).failure().code == errc::path_lost);
    ends.settle();
    CHECK(ends.b.heard.messages.size() == 10);
    REQUIRE(ends.b.heard.losses.size() == 1);
    CHECK(ends.b.heard.losses.front().cause.code == errc::actor_stopped);
    CHECK(ends.b.heard.handed_up_after_loss == 0);
    CHECK(ends.a.heard.losses.empty());
    CHECK_FALSE(ends.a.end->connect(ends.b.end->self(), ends.b.end->local_address()));
  }
}

TEST_CASE("sim network: the end of a process is a lost path to everybody who knew it, also in the middle of "
          "a connect") {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    pair ends{seed};
    ends.connect();
    ends.kill_b(); // a knows b, b has not heard of a
    ends.settle();
    CHECK(ends.a.heard.losses_of(ends.b.end->self()) == 1);
    pair others{seed};
    REQUIRE(others.b.end->connect(others.a.end->self(), others.a.end->local_address()));
    others.kill_b(); // its connect arrives from a dead process
    others.settle();
    CHECK(others.a.heard.losses_of(others.b.end->self()) == 1);
  }
}

TEST_CASE("sim network: a process that has ended sends nothing more (SN-1)") {
  pair ends;
  ends.connect();
  ends.settle();
  ends.world.kill(ends.a.process->pid(), SIGKILL);
  (void)ends.a.end->send(ends.b.end->self(), numbered(1));
  ends.a.end->close(ends.b.end->self());
  ends.settle();
  CHECK(ends.b.heard.messages.empty());
  REQUIRE(ends.b.heard.losses.size() == 1);
  CHECK(ends.b.heard.losses.front().cause.code == errc::path_lost); // no goodbye
}

TEST_CASE("sim network: a bulk transfer arrives whole, or its receiver refuses it (TR-3, TR-4)") {
  pair ends;
  ends.connect();
  std::vector<std::byte> source(100'000, std::byte{5});
  std::vector<bool> done;
  const auto note = [&](const expected<void>& result) { done.push_back(result.has_value()); };
  ends.a.end->send_bulk(ends.b.end->self(), 7, source, note);
  ends.settle();
  REQUIRE(done == std::vector{true});
  CHECK(ends.b.heard.bulks.at(7).bytes == source);
  CHECK(ends.b.heard.bulks.at(7).result->has_value());
  ends.b.heard.accept_bulk = false;
  ends.a.end->send_bulk(ends.b.end->self(), 8, source, note);
  ends.settle();
  CHECK(done == std::vector{true, false});
}

TEST_CASE("sim network: a clog makes a transfer late, a cut holds it until it ends") {
  for (const bool cut : {false, true}) {
    pair ends{1, 1};
    ends.connect();
    ends.settle();
    const auto begun = ends.world.now();
    const auto open_again = begun + 10s;
    if (!cut) ends.world.hosts().clog({.from = 0}, 20ms, open_again);
    std::vector<std::byte> source(1000, std::byte{5});
    ends.a.end->send_bulk(ends.b.end->self(), 7, source, [](const expected<void>&) {});
    REQUIRE(ends.until([&] { return ends.b.heard.bulks_announced == 1; }));
    if (cut) ends.world.hosts().cut({.from = 0}, open_again); // in the middle of it
    REQUIRE(ends.until([&] { return ends.b.heard.bulks.at(7).result.has_value(); }));
    CHECK(ends.b.heard.bulks.at(7).bytes == source);
    if (cut)
      CHECK(ends.world.now() >= open_again);
    else
      CHECK(ends.world.now() < begun + 40ms);
  }
}

TEST_CASE("sim network: what is sent after a transfer comes after its announcement (TR-5)") {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    pair ends{seed};
    ends.connect();
    std::vector<std::size_t> announced;
    ends.b.heard.then = [&](incarnation_id, std::span<const std::byte>) {
      announced.push_back(ends.b.heard.bulks_announced);
    };
    const std::vector<std::byte> source(1000);
    for (std::uint32_t i = 0; i < 10; ++i) {
      ends.a.end->send_bulk(ends.b.end->self(), i + 1, source, [](const expected<void>&) {});
      REQUIRE(ends.a.end->send(ends.b.end->self(), numbered(i)));
    }
    ends.settle();
    REQUIRE(announced.size() == 10);
    for (std::size_t i = 0; i < announced.size(); ++i)
      CHECK(announced[i] > i);
  }
}

TEST_CASE("sim network: a transfer that is cut gives both sides their memory back, once (TR-3)") {
  for (const bool sender_dies : {true, false}) {
    pair ends{3};
    ends.connect();
    std::vector<std::byte> source(100'000, std::byte{5});
    int done = 0;
    ends.a.end->send_bulk(ends.b.end->self(), 7, source, [&](const expected<void>& result) {
      ++done;
      CHECK_FALSE(result);
    });
    REQUIRE(ends.until([&] { return ends.b.heard.bulks_announced == 1; }));
    const auto torn = ends.b.heard.bulks.at(7).bytes;
    CHECK(torn.front() == std::byte{5}); // half of it is there
    CHECK(torn.back() == std::byte{0});
    ends.world.kill((sender_dies ? ends.a : ends.b).process->pid(), SIGKILL);
    ends.settle();
    if (sender_dies) {
      REQUIRE(ends.b.heard.bulks.at(7).result);
      CHECK_FALSE(ends.b.heard.bulks.at(7).result->has_value());
    } else {
      CHECK(done == 1);
    }
  }
}

TEST_CASE("sim rendezvous: a join is answered once: by the server, a refusal, or the deadline (SN-2)") {
  pair ends;
  auto server = ends.network.make_server(*ends.b.process);
  auto client = ends.network.make_client(*ends.a.process);
  std::vector<expected<join_answer>> answers;
  const auto ask = [&](const std::string& endpoint) {
    answers.clear();
    client->join(endpoint, {}, 2s, [&](const expected<join_answer>& answer) { answers.push_back(answer); });
    ends.settle();
  };
  int asked = 0;
  REQUIRE(server->start([&](const join_offer&) -> expected<join_answer> {
    if (++asked == 2) return error{errc::refused, "no place"};
    return join_answer{};
  }));
  ask(server->endpoint());
  REQUIRE(answers.size() == 1);
  CHECK(answers.front());
  ask(server->endpoint());
  REQUIRE(answers.size() == 1);
  CHECK(answers.front().failure().code == errc::refused);
  ask("sim:1");
  REQUIRE(answers.size() == 1);
  CHECK(answers.front().failure().code == errc::timed_out);
  CHECK(asked == 2);
}

TEST_CASE("sim rendezvous: whoever's server dies in the middle of a join gets the deadline's answer (SN-2)") {
  for (std::uint64_t at = 0; at < 12; ++at) {
    pair ends{at + 1};
    auto server = ends.network.make_server(*ends.b.process);
    auto client = ends.network.make_client(*ends.a.process);
    REQUIRE(server->start([](const join_offer&) -> expected<join_answer> { return join_answer{}; }));
    int answers = 0;
    client->join(server->endpoint(), {}, 2s, [&](const expected<join_answer>&) { ++answers; });
    const auto strike = ends.world.events() + at;
    (void)ends.world.run_until(
        [&] {
          if (ends.world.events() == strike) {
            ends.kill_b();
            server->stop();
          }
          return false;
        },
        plenty);
    CHECK(answers == 1);
  }
}

} // namespace
} // namespace troupe
