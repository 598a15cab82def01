// Random faults and random envelopes against the post office's invariants.
#include <array>
#include <map>
#include <memory>
#include <string>

#include <catch2/generators/catch_generators.hpp>
#include <catch2/generators/catch_generators_range.hpp>

#include "runtime/wire/envelope.hpp"
#include "tests/actors/support/remote_world.hpp"

using namespace troupe;
using namespace troupe::test;
using namespace std::chrono_literals;

namespace {

class dice {
public:
  explicit dice(std::uint64_t seed)
      : rng_{seed, stream_of("remote random")} {}
  std::uint64_t below(std::uint64_t bound) { return rng_.bits(draws_++) % bound; }

private:
  counter_rng rng_;
  std::uint64_t draws_{0};
};

// Asks, and counts how often each question completed.
class questioner final : public caf::event_based_actor {
public:
  questioner(caf::actor_config& config, std::map<std::uint64_t, int>& completed)
      : event_based_actor{config}
      , completed_{completed} {
    set_down_handler([](caf::down_msg&) {});
  }
  caf::behavior make_behavior() override {
    return {[this](caf::actor target, std::uint64_t number, std::uint64_t value) {
              completed_[number] = 0;
              request(target, caf::infinite, ping{value})
                  .then([this, number](const pong&) { ++completed_[number]; },
                        [this, number](caf::error&) { ++completed_[number]; });
            },
            [](const undelivered&) {}};
  }

private:
  std::map<std::uint64_t, int>& completed_;
};

} // namespace

TEST_CASE("remote: under any faults every request completes exactly once (PO-2)", "[remote]") {
  const auto seed = GENERATE(range(1, 41));
  dice random{static_cast<std::uint64_t>(seed)};
  world w;
  std::map<std::uint64_t, int> completed;
  std::uint64_t processes = 2;
  process a{w, 1};
  auto b = std::make_unique<process>(w, 2);
  auto asker = a.runtime.system().spawn<questioner>(completed);
  caf::actor served;
  const auto serve = [&] {
    served = b->runtime.system().spawn(server);
    REQUIRE(b->office.publish("server", served));
  };
  serve();
  auto far = a.office.remote(b->id, "server");
  for (std::uint64_t number = 0; number < 300; ++number) {
    static constexpr std::array<std::uint64_t, 4> questions{0, 1, 2, 99}; // kept, answered, and the last one
    caf::anon_send(asker, far, number, questions[random.below(number % 10 == 0 ? 4 : 3)]);
    for (auto steps = random.below(8); steps > 0; --steps)
      w.driver.step();
    switch (random.below(20)) {
    case 0: // the actor is killed and succeeded
      caf::anon_send_exit(served, caf::exit_reason::kill);
      w.driver.settle();
      serve();
      break;
    case 1: // the path breaks for both
      w.net.cut(a.id, b->id);
      w.net.cut(b->id, a.id);
      w.driver.settle();
      w.net.mend(a.id, b->id);
      break;
    case 2: { // the process dies, and another one takes its place
      const auto lost = b->id;
      served = nullptr;
      b.reset();
      w.driver.step();
      a.office.peer_lost(lost, {errc::process_died, "killed"});
      b = std::make_unique<process>(w, ++processes);
      serve();
      break;
    }
    default:
      break;
    }
    if (random.below(3) == 0) far = a.office.remote(b->id, "server");
    if (!b->runtime.counters().alive) {
      w.driver.settle();
      if (!b->runtime.counters().alive) serve();
    }
  }
  w.driver.advance(61s); // the net takes what the server keeps
  CHECK(completed.size() == 300);
  for (const auto& [number, times] : completed)
    CHECK(times == 1);
  CHECK(a.office.counters().requests == 0);
}

TEST_CASE("remote: random envelopes from a peer break nothing (PO-4)", "[remote]") {
  dice random{7};
  two_processes t;
  t.watch();
  caf::anon_send(t.asker, t.far, true); // a link, too
  t.driver.settle();
  alignas(8) std::array<std::byte, 1024> room{};
  const std::array<std::string, 4> names{"", "server", "nobody", "asker"};
  const std::array<std::uint64_t, 4> types{0, wire_type_of("test.ping"), wire_type_of("test.pong"), 12345};
  for (int round = 0; round < 5000; ++round) {
    auto& target = random.below(2) == 0 ? *t.a : *t.b;
    envelope what;
    what.job = {9, 9};
    what.sender = random.below(50) == 0 ? incarnation_id{7, 7} : (&target == t.a.get() ? t.b->id : t.a->id);
    what.kind = static_cast<envelope_kind>(1 + random.below(12));
    what.status = random.below(2) == 0 ? exit_status::of(errc::path_lost) : exit_status::normal;
    what.target = random.below(12);
    what.source = random.below(12);
    what.correlation = random.below(6);
    what.type = types[random.below(types.size())];
    what.name = names[random.below(names.size())];
    const std::uint64_t value = random.below(30);
    if (random.below(2) == 0) what.body = std::as_bytes(std::span{&value, 1});
    const auto used = encode(what, room);
    REQUIRE(used);
    target.office.on_message(what.sender, std::span{room}.first(*used));
    if (random.below(4) == 0) t.driver.settle();
  }
  t.driver.advance(2min);
  CHECK(t.a->office.counters().requests == 0);
  CHECK(t.b->office.counters().requests == 0);
}
