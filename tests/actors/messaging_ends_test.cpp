// What a message, a name and a process promise, over every transport: how actors, processes and paths end.
#include "tests/actors/support/messaging_pair.hpp"

using namespace troupe;
using namespace troupe::test;

namespace {

const error killed{errc::process_died, "killed by SIGKILL"};

void torn_link(messaging_world& world, bool far_end_first) {
  messaging_pair t{world};
  caf::anon_send(*t.asker, *t.far, true); // link
  REQUIRE(t.answers_again());
  std::vector<error> near_ends;
  std::vector<error> far_ends;
  {
    const auto served = t.b.office().remote(t.b.id(), "server"); // in its own process: the actor itself
    (*t.asker)->attach_functor([&](const caf::error& why) { near_ends.push_back(to_troupe(why)); });
    served->attach_functor([&](const caf::error& why) { far_ends.push_back(to_troupe(why)); });
    caf::anon_send(far_end_first ? served : *t.asker,
                   caf::exit_msg{caf::actor_addr{}, to_caf({errc::bad_data, "torn"})});
  }
  t.wait([&] { return !near_ends.empty() && !far_ends.empty(); });
  CHECK(near_ends.size() == 1);
  CHECK(far_ends.size() == 1);
  CHECK(near_ends[0].code == errc::bad_data);
  CHECK(far_ends[0].code == errc::bad_data);
}

} // namespace

TEST_CASE("ends: a request to an actor that dies completes with its cause (PO-2)", "[messages]") {
  in_every_world([](messaging_world& world) {
    messaging_pair t{world};
    t.ask(0); // kept, unanswered
    t.ask(13);
    t.wait([&] { return t.view.failures.size() == 2; });
    for (const auto& failure : t.view.failures)
      CHECK(failure.code == errc::device_failed);
    CHECK(t.a.office().counters().requests == 0);
  });
}

TEST_CASE("ends: a request to a process that is killed completes with path_lost (PO-2)", "[messages]") {
  in_every_world([](messaging_world& world) {
    needs_told_deaths(world);
    messaging_pair t{world};
    t.ask_and_see_arrive(0);
    t.ask_and_see_arrive(0);
    world.kill(t.b);
    t.wait([&] { return t.view.failures.size() == 2; });
    for (const auto& failure : t.view.failures)
      CHECK(failure.code == errc::path_lost);
    CHECK(t.suspicions.size() == 1);
    t.tell(*t.far, blob{"late"});
    t.ask(1);
    t.wait([&] { return t.view.returned.size() == 1 && t.view.failures.size() == 3; });
    CHECK(t.view.returned[0].cause.code == errc::path_lost);
    CHECK(t.view.failures[2].code == errc::path_lost);
    CHECK(t.a.office().counters().requests == 0);
    CHECK(t.a.office().counters().proxies == 0);
  });
}

TEST_CASE("ends: so does one to a process that stands still, as in a collective, and is killed (PO-2)",
          "[messages]") {
  in_every_world([](messaging_world& world) {
    needs_told_deaths(world);
    messaging_pair t{world};
    world.freeze(t.b);
    t.ask(1);
    t.settle_asker();
    CHECK(t.view.failures.empty());
    world.kill(t.b);
    t.wait([&] { return t.view.failures.size() == 1; });
    CHECK(t.view.failures[0].code == errc::path_lost);
    CHECK(t.view.answers.empty());
  });
}

TEST_CASE("ends: a verdict fails what waits for a process that stands still, at once (PO-2)", "[messages]") {
  in_every_world([](messaging_world& world) {
    messaging_pair t{world};
    t.watch();
    world.freeze(t.b);
    t.ask(1);
    t.settle_asker();
    t.a.office().peer_lost(t.b.id(), killed);
    t.wait([&] { return t.view.failures.size() == 1 && t.view.downs.size() == 1; });
    CHECK(t.view.failures[0].code == errc::process_died);
    CHECK(t.view.failures[0].text == killed.text);
    CHECK(t.view.downs[0].code == errc::process_died);
    world.thaw(t.b); // it wakes up and answers: nobody listens
    t.wait([&] { return t.a.office().counters().stale_sender > 0; });
    CHECK(t.view.answers.empty());
    CHECK(t.view.downs.size() == 1);
  });
}

TEST_CASE("ends: who only stood still goes on where it was", "[messages]") {
  in_every_world([](messaging_world& world) {
    messaging_pair t{world};
    t.watch();
    world.freeze(t.b);
    t.ask(1);
    t.ask(2);
    t.settle_asker();
    world.thaw(t.b);
    t.wait([&] { return t.view.answers.size() == 2; });
    CHECK(t.view.answers == std::vector<std::uint64_t>{2, 3});
    CHECK(t.view.downs.empty());
    CHECK(t.suspicions.empty());
  });
}

TEST_CASE("ends: a monitor sees one down, with the actor's cause (PO-6)", "[messages]") {
  in_every_world([](messaging_world& world) {
    messaging_pair t{world};
    t.watch();
    t.ask(13);
    t.wait([&] { return t.view.downs.size() == 1; });
    CHECK(t.view.downs[0].code == errc::device_failed);
    t.a.office().peer_lost(t.b.id(), killed); // a second cause
    t.settle_asker();
    CHECK(t.view.downs.size() == 1);
  });
}

TEST_CASE("ends: a monitor sees one down when the process is killed, whatever is told later (PO-6)",
          "[messages]") {
  in_every_world([](messaging_world& world) {
    needs_told_deaths(world);
    messaging_pair t{world};
    t.watch();
    REQUIRE(t.answers_again());
    const auto who = t.b.id();
    world.kill(t.b);
    t.wait([&] { return t.view.downs.size() == 1; });
    CHECK(t.view.downs[0].code == errc::path_lost);
    t.a.office().peer_lost(who, killed);
    t.settle_asker();
    CHECK(t.view.downs.size() == 1);
  });
}

TEST_CASE("ends: a linked actor that ends takes the one that linked to it along, once (PO-6)", "[messages]") {
  in_every_world([](messaging_world& world) { torn_link(world, true); });
}

TEST_CASE("ends: an actor that ends takes the one that it linked to along, once (PO-6)", "[messages]") {
  in_every_world([](messaging_world& world) { torn_link(world, false); });
}

TEST_CASE("ends: a link ends the other side when the process is lost (PO-6)", "[messages]") {
  in_every_world([](messaging_world& world) {
    messaging_pair t{world};
    caf::anon_send(*t.asker, *t.far, true);
    REQUIRE(t.answers_again());
    std::vector<error> ends;
    (*t.asker)->attach_functor([&](const caf::error& why) { ends.push_back(to_troupe(why)); });
    const auto who = t.b.id();
    world.kill(t.b);
    if (!world.tells_of_death()) t.a.office().peer_lost(who, killed);
    t.wait([&] { return !ends.empty(); });
    CHECK(ends[0].code == (world.tells_of_death() ? errc::path_lost : errc::process_died));
    t.a.office().peer_lost(who, killed);
    CHECK(ends.size() == 1);
  });
}

TEST_CASE("ends: a goodbye is told as one, to everything that was under way", "[messages]") {
  in_every_world([](messaging_world& world) {
    messaging_pair t{world};
    t.watch();
    t.ask_and_see_arrive(0);
    t.b.network().close(t.a.id());
    t.wait([&] { return !t.suspicions.empty() && !t.view.downs.empty() && !t.view.failures.empty(); });
    CHECK(t.suspicions[0].code == errc::actor_stopped);
    CHECK(t.view.failures[0].code == errc::actor_stopped);
    CHECK(t.view.downs[0].code == errc::actor_stopped);
    t.tell(*t.far, blob{"late"});
    t.wait([&] { return t.view.returned.size() == 1; });
    CHECK(t.view.returned[0].cause.code == errc::actor_stopped);
    CHECK(t.suspicions.size() == 1);
  });
}

TEST_CASE("ends: a restarted peer is a new peer; handles to the old one stay dead", "[messages]") {
  in_every_world([](messaging_world& world) {
    needs_told_deaths(world);
    messaging_pair t{world};
    const auto old = t.b.id();
    world.kill(t.b);
    t.wait([&] { return !t.suspicions.empty(); });
    auto& successor = world.start();
    serve(successor, "server");
    REQUIRE(messaging_world::connect(t.a, successor));
    t.ask(1); // through the old handle
    t.wait([&] { return t.view.failures.size() == 1; });
    CHECK(t.view.failures[0].code == errc::path_lost);
    *t.far = t.a.office().remote(successor.id(), "server");
    t.ask(1);
    t.wait([&] { return t.view.answers.size() == 1; });
    *t.far = t.a.office().remote(old, "server"); // a handle to the old life dies
    t.ask(1);
    t.wait([&] { return t.view.failures.size() == 2; });
    CHECK(t.view.failures[1].code == errc::path_lost);
  });
}

TEST_CASE("ends: who was declared dead and lives is not heard, and counted; his successor is (PO-4)",
          "[messages]") {
  in_every_world([](messaging_world& world) {
    messaging_pair t{world};
    client_view seen;
    listen(t.a, "sink", seen);
    client_view of_b;
    auto& teller = t.b.keep(t.b.runtime().system().spawn<client>(of_b));
    auto& far_sink = t.b.keep(t.b.office().remote(t.a.id(), "sink"));
    caf::anon_send(teller, far_sink, order{1});
    t.wait([&] { return seen.orders.size() == 1; });
    t.a.office().peer_lost(t.b.id(), killed);
    caf::anon_send(teller, far_sink, order{2});
    t.wait([&] { return t.a.office().counters().stale_sender > 0; });
    auto& successor = world.start();
    REQUIRE(messaging_world::connect(successor, t.a));
    client_view of_successor;
    auto& next = successor.keep(successor.runtime().system().spawn<client>(of_successor));
    auto& his_sink = successor.keep(successor.office().remote(t.a.id(), "sink"));
    caf::anon_send(next, his_sink, order{3});
    t.wait([&] { return seen.orders.size() == 2; });
    CHECK(seen.orders == std::vector<std::uint64_t>{1, 3});
  });
}
