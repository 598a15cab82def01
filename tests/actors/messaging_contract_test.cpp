// What a message, a name and a process promise, over every transport: delivery.
// Ends: messaging_ends_test.cpp.
#include <map>
#include <stdexcept>

#include "runtime/base/limits.hpp"
#include "tests/actors/support/messaging_pair.hpp"

using namespace troupe;
using namespace troupe::test;

namespace {

constexpr std::uint64_t of_one_sender = 1000;

// Each sender's numbers, in the order in which they arrived.
std::map<std::uint64_t, std::vector<std::uint64_t>> by_sender(const client_view& seen) {
  std::map<std::uint64_t, std::vector<std::uint64_t>> numbers;
  for (const auto value : seen.orders)
    numbers[value / of_one_sender].push_back(value % of_one_sender);
  return numbers;
}

std::vector<errc> codes_of(const std::vector<undelivered>& returned) {
  std::vector<errc> codes;
  for (const auto& one : returned)
    codes.push_back(one.cause.code);
  return codes;
}

caf::behavior thrower(caf::event_based_actor*) {
  return {[](const ping&) -> pong { throw std::runtime_error{"out of ideas"}; }, [](const blob&) {}};
}

} // namespace

TEST_CASE("messages: order is kept per pair of actors, and none arrives twice (PO-1)", "[messages]") {
  in_every_world([](messaging_world& world) {
    messaging_pair t{world};
    client_view seen;
    listen(t.b, "sink", seen);
    const auto sink = t.a.office().remote(t.b.id(), "sink");
    std::vector<client_view> unused(3);
    for (std::uint64_t sender = 0; sender < 3; ++sender) {
      auto& actor = t.a.keep(t.a.runtime().system().spawn<client>(unused[sender]));
      for (std::uint64_t i = 0; i < 300; ++i)
        caf::anon_send(actor, sink, order{sender * of_one_sender + i});
    }
    t.wait([&] { return seen.orders.size() >= 900; });
    REQUIRE(t.answers_again()); // whatever came twice has come, too
    CHECK(seen.orders.size() == 900);
    std::vector<std::uint64_t> want(300);
    for (std::uint64_t i = 0; i < want.size(); ++i)
      want[i] = i;
    for (const auto& [sender, numbers] : by_sender(seen))
      CHECK(numbers == want);
  });
}

TEST_CASE("messages: what cannot be sent comes back: too large, no codec (PO-3)", "[messages]") {
  in_every_world([](messaging_world& world) {
    messaging_pair t{world};
    t.tell(*t.far, blob{std::string(limits::envelope_bytes_max, 'x')});
    t.tell(*t.far, stranger{});
    t.wait([&] { return t.view.returned.size() == 2; });
    CHECK(codes_of(t.view.returned) == std::vector{errc::too_large, errc::bad_argument});
    CHECK(t.answers_again()); // the handle lives
  });
}

TEST_CASE("messages: to a name that never existed comes back as never_existed (PO-3)", "[messages]") {
  in_every_world([](messaging_world& world) {
    messaging_pair t{world};
    const auto nobody = t.a.office().remote(t.b.id(), "nobody");
    t.tell(nobody, blob{"hello"});
    caf::anon_send(*t.asker, nobody, std::uint64_t{1});
    t.wait([&] { return t.view.returned.size() == 1 && t.view.failures.size() == 1; });
    CHECK(t.view.returned[0].cause.code == errc::never_existed);
    CHECK(t.view.returned[0].type != 0);
    CHECK(t.view.failures[0].code == errc::never_existed);
  });
}

TEST_CASE("messages: to an actor that has stopped comes back as actor_stopped (PO-3)", "[messages]") {
  in_every_world([](messaging_world& world) {
    messaging_pair t{world};
    t.ask(99); // its last answer
    t.wait([&] { return t.view.answers.size() == 1; });
    t.tell(*t.far, blob{"late"});
    t.wait([&] { return t.view.returned.size() == 1; });
    CHECK(t.view.returned[0].cause.code == errc::actor_stopped);
    CHECK(t.view.answers == std::vector<std::uint64_t>{100});
  });
}

TEST_CASE("messages: to an actor that has failed comes back with the root cause (PO-3)", "[messages]") {
  in_every_world([](messaging_world& world) {
    messaging_pair t{world};
    auto& other = t.b.keep(t.b.runtime().system().spawn(thrower));
    REQUIRE(t.b.office().publish("thrower", other));
    const auto far_other = t.a.office().remote(t.b.id(), "thrower");
    caf::anon_send(*t.asker, far_other, std::uint64_t{1});
    t.wait([&] { return t.view.failures.size() == 1; });
    t.tell(far_other, blob{"late"});
    t.wait([&] { return t.view.returned.size() == 1; });
    CHECK(t.view.failures[0].code == errc::actor_failed);
    CHECK(t.view.failures[0].text.find("out of ideas") != std::string::npos);
    CHECK(t.view.returned[0].cause.code == errc::actor_failed);
    t.ask(13); // an error with a code of its own keeps it
    t.wait([&] { return t.view.failures.size() == 2; });
    CHECK(t.view.failures[1].code == errc::device_failed);
  });
}

TEST_CASE("messages: of an ended generation come back as stale_generation, counted (PO-4)", "[messages]") {
  in_every_world([](messaging_world& world) {
    messaging_pair t{world};
    client_view seen;
    listen(t.b, "sink", seen);
    const auto sink = t.a.office().remote(t.b.id(), "sink");
    t.a.office().set_generation(generation_id{4});
    t.b.office().set_generation(generation_id{5});
    t.tell(sink, order{1});
    t.wait([&] { return t.view.returned.size() == 1; });
    CHECK(t.view.returned[0].cause.code == errc::stale_generation);
    CHECK(seen.orders.empty());
    CHECK(t.b.office().counters().stale_generation == 1);
    t.a.office().set_generation(generation_id{5});
    t.tell(sink, order{2});
    t.wait([&] { return !seen.orders.empty(); });
    CHECK(seen.orders == std::vector<std::uint64_t>{2});
  });
}

TEST_CASE("messages: more than the path has room for come back as no_credit, each (PO-3, PO-5)",
          "[messages]") {
  in_every_world([](messaging_world& world) {
    messaging_pair t{world};
    constexpr std::size_t sent = 64;
    std::size_t arrived = 0;
    auto& sink = t.b.keep(t.b.runtime().system().spawn(
        [&](caf::event_based_actor*) -> caf::behavior { return {[&](const blob&) { ++arrived; }}; }));
    REQUIRE(t.b.office().publish("sink", sink));
    auto& far_sink = t.a.keep(t.a.office().remote(t.b.id(), "sink"));
    // One turn of one actor: nothing leaves the process in between.
    t.a.keep(t.a.runtime().system().spawn([&](caf::event_based_actor* self) -> caf::behavior {
      for (std::size_t i = 0; i < sent; ++i)
        self->send(far_sink, blob{std::string(200'000, 'x')});
      return {[&](const undelivered& what) { t.view.returned.push_back(what); }};
    }));
    t.wait([&] { return !t.view.returned.empty(); });
    REQUIRE(t.answers_again()); // all that was sent has been handled
    t.wait([&] { return arrived + t.view.returned.size() == sent; });
    CHECK(arrived > 0);
    for (const auto code : codes_of(t.view.returned))
      CHECK(code == errc::no_credit);
    CHECK(t.a.office().counters().unsent == t.view.returned.size() + t.view.failures.size());
  });
}

TEST_CASE("messages: more requests than are allowed fail as no_credit at once (PO-5)", "[messages]") {
  in_every_world([](messaging_world& world) {
    messaging_pair t{world, {.job = world_job, .requests_max = 2}};
    for (int i = 0; i < 3; ++i)
      t.ask(0); // kept, unanswered
    t.wait([&] { return !t.view.failures.empty(); });
    CHECK(t.view.failures[0].code == errc::no_credit);
    t.ask(7);
    t.wait([&] { return t.view.failures.size() == 2; });
    CHECK(t.a.office().counters().requests == 2);
  });
}

TEST_CASE("messages: a name leads to the successor; what was for the old life is not his (PO-1)",
          "[messages]") {
  in_every_world([](messaging_world& world) {
    messaging_pair t{world};
    const auto old = *t.far;
    t.ask(99);
    t.wait([&] { return t.view.answers.size() == 1; });
    client_view seen;
    auto& successor = t.b.keep(t.b.runtime().system().spawn<client>(seen));
    t.wait([&] { return t.b.office().publish("server", successor).has_value(); }); // the name is free then
    t.tell(old, order{1});
    t.wait([&] { return t.view.returned.size() == 1; });
    CHECK(t.view.returned[0].cause.code == errc::actor_stopped);
    const auto fresh = t.a.office().remote(t.b.id(), "server");
    CHECK(fresh != old);
    t.tell(fresh, order{2});
    t.wait([&] { return !seen.orders.empty(); });
    CHECK(seen.orders == std::vector<std::uint64_t>{2});
  });
}
