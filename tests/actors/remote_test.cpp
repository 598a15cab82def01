#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <caf/all.hpp>
#include <catch2/catch_test_macros.hpp>

#include "actors/remote/codec_table.hpp"
#include "actors/remote/post_office.hpp"
#include "actors/system/actor_runtime.hpp"
#include "actors/system/errors.hpp"
#include "runtime/wire/envelope.hpp"
#include "tests/actors/support/driver.hpp"
#include "tests/actors/support/network.hpp"

namespace troupe::test {

struct ping {
  static constexpr std::string_view wire_name = "test.ping";
  std::uint64_t value{0};
  void fields(auto& archive) { archive(value); }
};
struct pong {
  static constexpr std::string_view wire_name = "test.pong";
  std::uint64_t value{0};
  void fields(auto& archive) { archive(value); }
};
struct blob {
  static constexpr std::string_view wire_name = "test.blob";
  std::string bytes;
  void fields(auto& archive) { archive(bytes); }
};
struct order { // of one generation only
  static constexpr std::string_view wire_name = "test.order";
  static constexpr bool generation_bound = true;
  std::uint64_t value{0};
  void fields(auto& archive) { archive(value); }
};
struct stranger { // not in the table
  static constexpr std::string_view wire_name = "test.stranger";
};

} // namespace troupe::test

namespace {

using namespace troupe;
using namespace troupe::test;
using namespace std::chrono_literals;

codec_table make_codecs() {
  codec_table table;
  table.add<ping, pong, blob, order>();
  return table;
}

struct world {
  test::driver driver{3};
  test::network net;
  test::memory_log log;
  codec_table codecs = make_codecs();
};

struct process {
  process(world& w, std::uint64_t number, post_office_settings settings = {.job = {9, 9}})
      : net{w.net}
      , id{1, number}
      , loop{w.driver.make_executor()}
      , runtime{loop, w.driver, w.log}
      , endpoint{w.net.join(id, loop)}
      , office{runtime, *endpoint, w.codecs, settings} {}
  ~process() { net.leave(id); }

  test::network& net;
  incarnation_id id;
  executor& loop;
  actor_runtime runtime;
  std::unique_ptr<test::network::endpoint> endpoint;
  post_office office;
};

// Answers ping(n) with pong(n + 1); keeps silent at 0; fails at 13; ends at 99.
caf::behavior server(caf::event_based_actor* self) {
  auto kept = std::make_shared<std::vector<caf::response_promise>>();
  return {
      [=](const ping& what) -> caf::result<pong> {
        if (what.value == 13) throw actor_error{errc::device_failed, "device 0 is lost"};
        if (what.value == 0) {
          kept->push_back(self->make_response_promise());
          return caf::delegated<pong>{};
        }
        if (what.value == 99) self->quit();
        return pong{what.value + 1};
      },
      [](const blob& what) { return what; },
  };
}

// What an actor saw, for the tests to look at.
struct client_view {
  std::vector<std::uint64_t> answers;
  std::vector<error> failures;
  std::vector<error> downs;
  std::vector<undelivered> returned;
  std::vector<std::uint64_t> orders;
};

class client final : public caf::event_based_actor {
public:
  client(caf::actor_config& config, client_view& view)
      : event_based_actor{config}
      , view_{view} {
    set_down_handler([this](caf::down_msg& down) { view_.downs.push_back(to_troupe(down.reason)); });
  }
  caf::behavior make_behavior() override {
    return {
        [this](caf::actor target, std::uint64_t value) { // ask
          request(target, caf::infinite, ping{value})
              .then([this](const pong& answer) { view_.answers.push_back(answer.value); },
                    [this](caf::error& failure) { view_.failures.push_back(to_troupe(failure)); });
        },
        [this](caf::actor target, const blob& what) { send(target, what); },
        [this](caf::actor target, const order& what) { send(target, what); },
        [this](caf::actor target, const stranger& what) { send(target, what); },
        [this](caf::actor target) { monitor(target); },
        [this](caf::actor target, bool) { link_to(target); },
        [this](const undelivered& what) { view_.returned.push_back(what); },
        [this](const order& what) { view_.orders.push_back(what.value); },
        [](const pong&) {},
    };
  }

private:
  client_view& view_;
};

struct two_processes : world {
  std::unique_ptr<process> a = std::make_unique<process>(*this, 1);
  std::unique_ptr<process> b = std::make_unique<process>(*this, 2);
  client_view view;
  caf::actor asker = a->runtime.system().spawn<client>(view);
  caf::actor served = b->runtime.system().spawn(server);
  caf::actor far;

  two_processes() {
    REQUIRE(b->office.publish("server", served));
    driver.settle();
    far = a->office.remote(b->id, "server");
  }
  void ask(std::uint64_t value) {
    caf::anon_send(asker, far, value);
    driver.settle();
  }
  void watch() {
    caf::anon_send(asker, far);
    driver.settle();
  }
};

} // namespace

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
  const std::uint64_t value = 5;
  what.body = std::as_bytes(std::span{&value, 1});
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
