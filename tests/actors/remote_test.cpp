#include <array>
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/limits.hpp"
#include "runtime/wire/envelope.hpp"
#include "tests/actors/support/remote_world.hpp"

using namespace troupe;
using namespace troupe::test;
using namespace std::chrono_literals;

TEST_CASE("remote: a request crosses processes and its answer comes back", "[remote]") {
  two_processes t;
  t.ask(41);
  CHECK(t.view.answers == std::vector<std::uint64_t>{42});
  CHECK(t.view.failures.empty());
  CHECK(t.a->office.counters().requests == 0);
}

TEST_CASE("remote: messages arrive in the order sent (PO-1)", "[remote]") {
  two_processes t;
  client_view sink_view;
  auto sink = t.b->runtime.system().spawn<client>(sink_view);
  REQUIRE(t.b->office.publish("sink", sink));
  auto far_sink = t.a->office.remote(t.b->id, "sink");
  std::vector<std::uint64_t> want;
  for (std::uint64_t i = 0; i < 200; ++i) {
    caf::anon_send(t.asker, far_sink, order{i});
    want.push_back(i);
  }
  t.driver.settle();
  CHECK(sink_view.orders == want);
}

TEST_CASE("remote: one name and life gives one handle; the own process gives the actor itself", "[remote]") {
  two_processes t;
  CHECK(t.a->office.remote(t.b->id, "server") == t.far);
  CHECK(t.b->office.remote(t.b->id, "server") == t.served);
}

TEST_CASE("remote: the name leads to the successor once it is published", "[remote]") {
  two_processes t;
  t.ask(13);
  auto successor = t.b->runtime.system().spawn(server);
  REQUIRE(t.b->office.publish("server", successor));
  t.far = t.a->office.remote(t.b->id, "server");
  t.ask(1);
  CHECK(t.view.answers == std::vector<std::uint64_t>{2});
}

TEST_CASE("remote: a message for an ended life does not reach its successor (PO-1)", "[remote]") {
  two_processes t;
  t.driver.settle();
  caf::anon_send_exit(t.served, caf::exit_reason::kill);
  while (t.b->runtime.counters().alive != 0)
    REQUIRE(t.driver.step());
  auto successor = t.b->runtime.system().spawn(server);
  REQUIRE(t.b->office.publish("server", successor));
  t.ask(1); // sent through the old handle, perhaps before its down arrives
  CHECK(t.view.answers.empty());
  REQUIRE(t.view.failures.size() == 1);
  CHECK(t.view.failures[0].code == errc::actor_stopped);
}

TEST_CASE("remote: a name that never existed, and one that has ended, are told apart (PO-3)", "[remote]") {
  two_processes t;
  t.far = t.a->office.remote(t.b->id, "nobody");
  t.ask(1);
  REQUIRE(t.view.failures.size() == 1);
  CHECK(t.view.failures[0].code == errc::never_existed);
  caf::anon_send_exit(t.served, caf::exit_reason::user_shutdown);
  t.driver.settle();
  t.far = t.a->office.remote(t.b->id, "server");
  t.ask(1);
  REQUIRE(t.view.failures.size() == 2);
  CHECK(t.view.failures[1].code == errc::actor_stopped);
}

TEST_CASE("remote: an undeliverable message comes back with type and cause (PO-3)", "[remote]") {
  two_processes t;
  caf::anon_send(t.asker, t.far, stranger{});
  caf::anon_send(t.asker, t.far, blob{std::string(limits::envelope_bytes_max, 'x')});
  t.driver.settle();
  REQUIRE(t.view.returned.size() == 2);
  CHECK(t.view.returned[0].cause.code == errc::bad_argument);
  CHECK(t.view.returned[1].cause.code == errc::too_large);

  caf::anon_send(t.asker, t.far, blob{"late"}); // on its way while the actor ends
  while (t.a->office.counters().sent < 2)
    REQUIRE(t.driver.step());
  caf::anon_send_exit(t.served, caf::exit_reason::kill);
  t.driver.settle();
  t.a->endpoint->full = true;
  auto other = t.a->office.remote(t.b->id, "other"); // cannot even be asked for
  caf::anon_send(t.asker, other, blob{"no room"});
  t.driver.settle();
  REQUIRE(t.view.returned.size() >= 3);
  CHECK(t.view.returned.back().cause.code == errc::no_credit);
}

TEST_CASE("remote: messages bound to an ended generation come back, and are counted (PO-4)", "[remote]") {
  two_processes t;
  client_view sink_view;
  auto sink = t.b->runtime.system().spawn<client>(sink_view);
  REQUIRE(t.b->office.publish("sink", sink));
  auto far_sink = t.a->office.remote(t.b->id, "sink");
  t.a->office.set_generation(generation_id{4});
  t.b->office.set_generation(generation_id{5});
  caf::anon_send(t.asker, far_sink, order{1});
  t.driver.settle();
  CHECK(sink_view.orders.empty());
  REQUIRE(t.view.returned.size() == 1);
  CHECK(t.view.returned[0].cause.code == errc::stale_generation);
  CHECK(t.view.returned[0].type == wire_type_of("test.order"));
  CHECK(t.b->office.counters().stale_generation == 1);
  t.ask(1); // not bound to one
  CHECK(t.view.answers.size() == 1);
}

TEST_CASE("remote: requests, handles and mailboxes filled from outside are bounded (PO-5)", "[remote]") {
  world w;
  process a{w, 1, {.job = {9, 9}, .requests_max = 2}};
  process b{w, 2, {.job = {9, 9}, .channels_max = 2, .mailbox_messages_max = 3}};
  client_view view;
  auto asker = a.runtime.system().spawn<client>(view);
  auto served = b.runtime.system().spawn(server);
  REQUIRE(b.office.publish("server", served));
  auto far = a.office.remote(b.id, "server");
  for (int i = 0; i < 3; ++i)
    caf::anon_send(asker, far, std::uint64_t{0});
  w.driver.settle();
  REQUIRE(view.failures.size() == 1);
  CHECK(view.failures[0].code == errc::no_credit);

  auto second = a.office.remote(b.id, "second");
  auto third = a.office.remote(b.id, "server3");
  w.driver.settle();
  caf::anon_send(asker, third, std::uint64_t{1});
  w.driver.settle();
  REQUIRE(view.failures.size() == 2);

  // A mailbox that nobody empties: the actor's own turn is put off by never running b's loop in between.
  alignas(8) std::array<std::byte, 512> room{};
  envelope what;
  what.job = {9, 9};
  what.sender = a.id;
  what.target = 1; // the first channel
  what.source = 77;
  what.type = wire_type_of("test.ping");
  alignas(8) std::array<std::byte, 64> body{};
  what.body = encode_body(ping{5}, body).value();
  const auto used = encode(what, room);
  REQUIRE(used);
  const auto bounced = b.office.counters().bounced;
  for (int i = 0; i < 10; ++i)
    b.office.on_message(a.id, std::span{room}.first(*used));
  CHECK(b.office.counters().bounced == bounced + 7);
}

TEST_CASE("remote: garbage, other jobs and forged senders are dropped and counted (PO-4)", "[remote]") {
  two_processes t;
  t.driver.settle();
  alignas(8) std::array<std::byte, 512> room{};
  t.b->office.on_message(t.a->id, std::span{room}.first(64));
  CHECK(t.b->office.counters().corrupt == 1);
  envelope what;
  what.job = {1, 1};
  what.sender = t.a->id;
  auto used = encode(what, room);
  t.b->office.on_message(t.a->id, std::span{room}.first(*used));
  CHECK(t.b->office.counters().foreign_job == 1);
  what.job = {9, 9};
  what.sender = {5, 5};
  used = encode(what, room);
  t.b->office.on_message(t.a->id, std::span{room}.first(*used));
  CHECK(t.b->office.counters().stale_sender == 1);
}

TEST_CASE("remote: a body that does not decode fails its request as corrupt", "[remote]") {
  two_processes t;
  t.driver.settle();
  alignas(8) std::array<std::byte, 512> room{};
  envelope what;
  what.job = {9, 9};
  what.sender = t.a->id;
  what.kind = envelope_kind::request;
  what.target = 1;
  what.source = 1;
  what.correlation = 1234;
  what.type = wire_type_of("test.ping"); // and no body
  const auto used = encode(what, room);
  t.b->office.on_message(t.a->id, std::span{room}.first(*used));
  CHECK(t.b->office.counters().bounced == 1);
  t.driver.settle();
  CHECK(t.a->office.counters().late == 1); // the failure arrived; nobody had asked
}

TEST_CASE("remote: an actor may answer its remote sender with messages and monitor it", "[remote]") {
  world w;
  process a{w, 1};
  process b{w, 2};
  std::vector<error> seen_by_b;
  std::vector<std::uint64_t> seen_by_a;
  auto greeter = b.runtime.system().spawn([&](caf::event_based_actor* self) -> caf::behavior {
    self->set_down_handler([&](caf::down_msg& down) { seen_by_b.push_back(to_troupe(down.reason)); });
    return {[self](const order& what) {
      auto sender = caf::actor_cast<caf::actor>(self->current_sender());
      self->monitor(sender);
      self->send(sender, order{what.value + 1});
    }};
  });
  REQUIRE(b.office.publish("greeter", greeter));
  auto far = a.office.remote(b.id, "greeter");
  auto visitor = a.runtime.system().spawn([&](caf::event_based_actor* self) -> caf::behavior {
    self->send(far, order{1});
    return {[&, self](const order& what) {
      seen_by_a.push_back(what.value);
      self->quit(to_caf({errc::bad_data, "done"}));
    }};
  });
  w.driver.settle();
  CHECK(seen_by_a == std::vector<std::uint64_t>{2});
  REQUIRE(seen_by_b.size() == 1);
  CHECK(seen_by_b[0].code == errc::bad_data);
}

TEST_CASE("remote: control messages pass without an actor; bulk is handed through", "[remote]") {
  two_processes t;
  std::vector<std::uint64_t> types;
  t.b->office.set_control_handler(
      [&](incarnation_id, std::uint64_t type, std::span<const std::byte>) { types.push_back(type); });
  CHECK(t.a->office.send_control(t.b->id, 7, {}));
  t.driver.settle();
  CHECK(types == std::vector<std::uint64_t>{7});

  struct sink final : bulk_listener {
    std::vector<std::byte> memory;
    int received{0};
    std::span<std::byte> on_bulk_announced(incarnation_id, const bulk_announcement& what) override {
      memory.resize(what.bytes);
      return memory;
    }
    void on_bulk_received(incarnation_id, std::uint64_t, expected<void>) override { ++received; }
  } listener;
  t.b->office.set_bulk_handler(&listener);
  const std::array<std::byte, 4> bytes{std::byte{1}, std::byte{2}, std::byte{3}, std::byte{4}};
  bool done = false;
  t.a->office.send_bulk(t.b->id, 1, bytes, [&](expected<void> result) { done = result.has_value(); });
  CHECK(done);
  CHECK(listener.received == 1);
  CHECK(listener.memory.size() == 4);
}
