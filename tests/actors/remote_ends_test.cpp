// How handles, requests and peers end.
#include <memory>
#include <optional>
#include <vector>

#include "tests/actors/support/remote_world.hpp"

using namespace troupe;
using namespace troupe::test;
using namespace std::chrono_literals;

TEST_CASE("remote: a failed actor fails its requests at once, with the root cause (PO-2)", "[remote]") {
  two_processes t;
  t.watch();
  t.ask(0); // kept by the server, unanswered
  CHECK(t.view.failures.empty());
  t.ask(13);
  REQUIRE(t.view.failures.size() == 2);
  for (const auto& failure : t.view.failures) {
    CHECK(failure.code == errc::device_failed);
    CHECK(failure.text.starts_with("device 0 is lost"));
  }
  REQUIRE(t.view.downs.size() == 1); // PO-6
  CHECK(t.view.downs[0].code == errc::device_failed);
  t.ask(5); // later: at once
  REQUIRE(t.view.failures.size() == 3);
  CHECK(t.view.failures[2].code == errc::device_failed);
}

TEST_CASE("remote: a lost path kills every handle once and fails every request (PO-2, PO-6)", "[remote]") {
  two_processes t;
  std::vector<error> suspected;
  t.a->office.set_path_lost_handler([&](incarnation_id, const error& cause) { suspected.push_back(cause); });
  t.watch();
  t.ask(0);
  t.ask(0);
  t.net.cut(t.a->id, t.b->id);
  t.driver.settle();
  CHECK(suspected.size() == 1);
  REQUIRE(t.view.failures.size() == 2);
  CHECK(t.view.failures[0].code == errc::path_lost);
  REQUIRE(t.view.downs.size() == 1);
  CHECK(t.view.downs[0].code == errc::path_lost);
  t.a->office.peer_lost(t.b->id, {errc::process_died, "killed by SIGKILL"});
  t.driver.settle();
  CHECK(t.view.downs.size() == 1);
  CHECK(t.view.failures.size() == 2);
  t.far = t.a->office.remote(t.b->id, "server"); // declared dead: nothing is sent
  t.ask(1);
  REQUIRE(t.view.failures.size() == 3);
  CHECK(t.view.failures[2].code == errc::process_died);
}

TEST_CASE("remote: what a peer declared dead still sends is dropped and counted (PO-4)", "[remote]") {
  two_processes t;
  t.b->office.peer_lost(t.a->id, {errc::process_died, "killed"});
  t.ask(1);
  CHECK(t.view.answers.empty());
  CHECK(t.b->office.counters().stale_sender >= 1);
}

TEST_CASE("remote: after a path is mended, old handles stay dead and new ones work", "[remote]") {
  two_processes t;
  t.watch();
  t.net.cut(t.a->id, t.b->id); // only one side learns of it
  t.driver.settle();
  t.net.mend(t.a->id, t.b->id);
  t.ask(1);
  REQUIRE(t.view.failures.size() == 1);
  t.far = t.a->office.remote(t.b->id, "server");
  t.ask(1);
  CHECK(t.view.answers.size() == 1);
}

TEST_CASE("remote: an end of a linked actor ends the other side, either way (PO-6)", "[remote]") {
  for (const bool far_end_first : {true, false}) {
    two_processes t;
    caf::anon_send(t.asker, t.far, true); // link
    t.driver.settle();
    std::optional<error> near_end;
    std::optional<error> far_end;
    t.asker->attach_functor([&](const caf::error& reason) { near_end = to_troupe(reason); });
    t.served->attach_functor([&](const caf::error& reason) { far_end = to_troupe(reason); });
    caf::anon_send(far_end_first ? t.served : t.asker,
                   caf::exit_msg{caf::actor_addr{}, to_caf({errc::bad_data, "torn"})});
    t.driver.settle();
    REQUIRE(near_end);
    REQUIRE(far_end);
    CHECK(near_end->code == errc::bad_data);
    CHECK(far_end->code == errc::bad_data);
  }
}

TEST_CASE("remote: an actor linked from a process that is lost gets one exit (PO-6)", "[remote]") {
  two_processes t;
  caf::anon_send(t.asker, t.far, true);
  t.driver.settle();
  int exits = 0;
  t.served->attach_functor([&](const caf::error&) { ++exits; });
  t.b->office.peer_lost(t.a->id, {errc::process_died, "killed"});
  t.driver.settle();
  CHECK(exits == 1);
}

TEST_CASE("remote: send_exit kills the far actor; its observers see the kill", "[remote]") {
  two_processes t;
  t.watch();
  caf::anon_send_exit(t.far, caf::exit_reason::kill);
  t.driver.settle();
  CHECK(t.b->runtime.counters().alive == 0);
  REQUIRE(t.view.downs.size() == 1);
  CHECK(t.view.downs[0].code == errc::actor_stopped);
}

TEST_CASE("remote: the net catches requests that nobody answers (PO-2)", "[remote]") {
  two_processes t;
  t.ask(0);
  t.driver.advance(59s);
  CHECK(t.view.failures.empty());
  t.driver.advance(1s);
  REQUIRE(t.view.failures.size() == 1);
  CHECK(t.view.failures[0].code == errc::timed_out);
  CHECK(t.a->office.counters().requests == 0);
  CHECK(t.driver.timers() == 0);
}

TEST_CASE("remote: a process that vanishes while requests are under way leaves nothing behind", "[remote]") {
  two_processes t;
  t.watch();
  t.ask(0);
  const auto lost = t.b->id;
  t.served = nullptr;
  t.b.reset();
  t.a->office.peer_lost(lost, {errc::process_died, "killed by SIGKILL"});
  t.driver.settle();
  CHECK(t.view.failures.size() == 1);
  CHECK(t.view.downs.size() == 1);
  CHECK(t.a->office.counters().requests == 0);
  CHECK(t.a->office.counters().proxies == 0);
}

TEST_CASE("remote: leaving the job fails what is under way", "[remote]") {
  world w;
  client_view view;
  auto a = std::make_unique<process>(w, 1);
  process b{w, 2};
  auto served = b.runtime.system().spawn(server);
  REQUIRE(b.office.publish("server", served));
  auto asker = a->runtime.system().spawn<client>(view);
  caf::anon_send(asker, a->office.remote(b.id, "server"), std::uint64_t{0});
  w.driver.settle();
  asker = nullptr;
  a.reset();
  w.driver.advance(2h);
}
