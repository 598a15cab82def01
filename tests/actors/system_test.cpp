#include <array>
#include <filesystem>
#include <iterator>
#include <stdexcept>

#include <caf/all.hpp>
#include <catch2/catch_test_macros.hpp>

#include "actors/system/actor_runtime.hpp"
#include "actors/system/errors.hpp"
#include "tests/actors/support/driver.hpp"

namespace {

using namespace troupe;
using namespace std::chrono_literals;

struct fixture {
  test::driver driver;
  test::memory_log log;
  executor& loop = driver.make_executor();
  actor_runtime runtime{loop, driver, log};
};

std::size_t threads_of_this_process() {
  const std::filesystem::directory_iterator tasks{"/proc/self/task"};
  return static_cast<std::size_t>(std::distance(begin(tasks), end(tasks)));
}

caf::behavior echo(caf::event_based_actor*) {
  return {[](int value) { return value; }};
}

} // namespace

TEST_CASE("actor runtime: actors run on the executor given, with no thread of their own", "[actors]") {
  const auto before = threads_of_this_process();
  fixture f;
  int answer = 0;
  auto server = f.runtime.system().spawn(echo);
  f.runtime.system().spawn([&, server](caf::event_based_actor* self) {
    self->request(server, 1s, 42).then([&](int value) { answer = value; });
  });
  CHECK(answer == 0); // nothing runs before the loop does
  f.driver.settle();
  CHECK(answer == 42);
  CHECK(threads_of_this_process() == before);
}

TEST_CASE("actor runtime: time is the clock seam's (AC-1)", "[actors]") {
  fixture f;
  std::vector<int> order;
  f.runtime.system().spawn([&](caf::event_based_actor* self) -> caf::behavior {
    self->delayed_send(self, 20s, 2);
    self->delayed_send(self, 10s, 1);
    self->delayed_send(self, 20s, 3);
    return {[&](int value) { order.push_back(value); }};
  });
  f.driver.advance(9s);
  CHECK(order.empty());
  CHECK(f.driver.timers() == 1); // AC-2
  f.driver.advance(1s);
  CHECK(order == std::vector{1});
  f.driver.advance(10s);
  CHECK(order == std::vector{1, 2, 3}); // AC-3
}

TEST_CASE("actor runtime: a request without an answer times out in virtual time", "[actors]") {
  fixture f;
  std::optional<error> failure;
  auto silent = f.runtime.system().spawn([](caf::event_based_actor* self) -> caf::behavior {
    auto promises = std::make_shared<std::vector<caf::response_promise>>();
    return {[=](int) {
      promises->push_back(self->make_response_promise());
      return promises->back();
    }};
  });
  f.runtime.system().spawn([&](caf::event_based_actor* self) {
    self->request(silent, 5s, 1).then([](int) {}, [&](caf::error& e) { failure = to_troupe(e); });
  });
  f.driver.advance(4999ms);
  CHECK(!failure);
  f.driver.advance(1ms);
  REQUIRE(failure);
  CHECK(failure->code == errc::timed_out);
}

TEST_CASE("actor runtime: an exception becomes the exit reason, root cause first (AS-3)", "[actors]") {
  fixture f;
  std::vector<error> causes;
  auto watch = [&](caf::actor victim) {
    return f.runtime.system().spawn([&, victim](caf::event_based_actor* self) -> caf::behavior {
      self->monitor(victim);
      self->set_down_handler([&](caf::down_msg& down) { causes.push_back(to_troupe(down.reason)); });
      return {[](int) {}};
    });
  };
  auto plain = f.runtime.system().spawn([](caf::event_based_actor*) -> caf::behavior {
    return {[](int) { throw std::runtime_error{"shard 3 is torn"}; }};
  });
  auto typed = f.runtime.system().spawn([](caf::event_based_actor*) -> caf::behavior {
    return {[](int) { throw actor_error{errc::bad_data, "label 12 is out of range"}; }};
  });
  const std::array watchers{watch(plain), watch(typed)}; // an actor that nobody holds would end
  f.driver.settle();
  caf::anon_send(plain, 1);
  f.driver.settle();
  caf::anon_send(typed, 1);
  f.driver.settle();
  REQUIRE(causes.size() == 2);
  CHECK(causes[0].code == errc::actor_failed);
  CHECK(causes[0].text.starts_with("shard 3 is torn ["));
  CHECK(causes[1].code == errc::bad_data);
  CHECK(causes[1].text.starts_with("label 12 is out of range ["));
  CHECK(f.runtime.counters().exceptions == 2);
  CHECK(f.runtime.counters().alive == watchers.size());
  CHECK(f.log.has("shard 3 is torn"));
}

TEST_CASE("actor runtime: a request to an actor that failed gets the root cause", "[actors]") {
  fixture f;
  std::optional<error> failure;
  auto server = f.runtime.system().spawn([](caf::event_based_actor*) -> caf::behavior {
    return {[](int) -> int { throw actor_error{errc::storage_full, "no space left on /data"}; }};
  });
  f.runtime.system().spawn([&](caf::event_based_actor* self) {
    self->request(server, 5s, 1).then([](int) {}, [&](caf::error& e) { failure = to_troupe(e); });
  });
  f.driver.settle();
  REQUIRE(failure);
  CHECK(failure->code == errc::storage_full);
}

TEST_CASE("actor runtime: ready actors take turns, each bounded (AS-1)", "[actors]") {
  test::driver driver;
  test::memory_log log;
  actor_runtime runtime{driver.make_executor(), driver, log, {.messages_per_turn = 2, .actors_per_turn = 1}};
  std::string order;
  auto make = [&](char name) {
    return runtime.system().spawn([&order, name](caf::event_based_actor*) -> caf::behavior {
      return {[&order, name](int) { order += name; }};
    });
  };
  auto a = make('a');
  auto b = make('b');
  for (int i = 0; i < 6; ++i)
    caf::anon_send(a, i);
  for (int i = 0; i < 2; ++i)
    caf::anon_send(b, i);
  driver.step();
  CHECK(order.size() <= 2); // one turn is bounded, the loop's other work runs now
  driver.settle();
  CHECK(order.size() == 8);
  CHECK(order.find('b') <= 2); // b did not wait for all of a's messages
}

TEST_CASE("actor runtime: one seed, one order, over several systems in one thread", "[actors]") {
  const auto trace_of = [](std::uint64_t seed) {
    test::driver driver{seed};
    test::memory_log log;
    std::string trace;
    std::vector<std::unique_ptr<actor_runtime>> systems;
    for (int host = 0; host < 3; ++host)
      systems.push_back(std::make_unique<actor_runtime>(driver.make_executor(), driver, log));
    for (std::size_t host = 0; host < systems.size(); ++host) {
      const auto letter = static_cast<char>('a' + host);
      systems[host]->system().spawn([&trace, letter](caf::event_based_actor* self) -> caf::behavior {
        self->send(self, 0);
        return {[&trace, letter, self](int count) {
          trace += letter;
          if (count < 20) self->delayed_send(self, std::chrono::milliseconds{count % 3}, count + 1);
        }};
      });
    }
    driver.advance(1s);
    return trace;
  };
  CHECK(trace_of(7) == trace_of(7));
  CHECK(trace_of(7).size() == 63);
  CHECK(trace_of(7) != trace_of(8));
}

TEST_CASE("actor runtime: stop ends every actor, also one that holds itself (AS-5)", "[actors]") {
  fixture f;
  int ended = 0;
  auto spawn = [&] {
    return f.runtime.system().spawn([&](caf::event_based_actor* self) -> caf::behavior {
      self->attach_functor([&](const caf::error&) { ++ended; });
      self->set_exit_handler([](caf::exit_msg&) {}); // traps everything but a kill
      auto myself = caf::actor_cast<caf::actor>(self);
      self->delayed_send(self, 1h, 1);
      return {[myself](int) {}};
    });
  };
  for (int i = 0; i < 5; ++i)
    spawn();
  f.driver.settle();
  spawn(); // has not run yet
  CHECK(f.runtime.stop());
  CHECK(ended == 6);
  CHECK(f.runtime.counters().alive == 0);
  CHECK(f.runtime.stop()); // again: nothing
  f.driver.advance(2h);    // late timers and turns find nothing
}

TEST_CASE("actor runtime: stop runs no handler of a message that waits (AS-5)", "[actors]") {
  fixture f;
  int handled = 0;
  const auto actor = f.runtime.system().spawn(
      [&](caf::event_based_actor*) -> caf::behavior { return {[&](int) { ++handled; }}; });
  for (int i = 0; i < 10; ++i)
    caf::anon_send(actor, i);
  CHECK(f.runtime.stop());
  CHECK(handled == 0);
}

TEST_CASE("actor runtime: destruction returns though nobody ran the loop (AS-6)", "[actors]") {
  test::driver driver;
  test::memory_log log;
  {
    actor_runtime runtime{driver.make_executor(), driver, log};
    auto target = runtime.system().spawn(echo);
    caf::anon_send(target, 1);
  }
  driver.settle();
  driver.advance(1h);
  CHECK(log.lines.empty());
}

TEST_CASE("actor runtime: what an actor prints, or does not understand, is logged", "[actors]") {
  fixture f;
  auto server = f.runtime.system().spawn(echo);
  caf::anon_send(server, std::string{"what?"});
  f.driver.settle();
  CHECK(f.log.has("what?"));
}

TEST_CASE("actor errors: code and text survive the way through CAF (AE-1, AE-2)", "[actors]") {
  for (const auto code : {errc::bad_argument, errc::stale_generation, errc::internal}) {
    const auto back = to_troupe(to_caf({code, "the cause [hop]"}));
    CHECK(back.code == code);
    CHECK(back.text == "the cause [hop]");
  }
  CHECK(to_troupe(caf::error{}).code == errc::actor_stopped);
  CHECK(to_troupe(caf::make_error(caf::exit_reason::kill)).code == errc::actor_stopped);
  CHECK(to_troupe(caf::make_error(caf::exit_reason::remote_link_unreachable)).code == errc::path_lost);
  CHECK(to_troupe(caf::make_error(caf::sec::request_timeout)).code == errc::timed_out);
  CHECK(is_orderly_exit(caf::error{}));
  CHECK(!is_orderly_exit(caf::make_error(caf::exit_reason::kill)));
}
