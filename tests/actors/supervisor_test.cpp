#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include <caf/all.hpp>
#include <catch2/catch_test_macros.hpp>

#include "actors/supervisor/supervisor_actor.hpp"
#include "actors/system/actor_runtime.hpp"
#include "actors/system/errors.hpp"
#include "tests/actors/support/driver.hpp"

namespace {

using namespace troupe;
using namespace std::chrono_literals;

struct troupe_of_children {
  test::driver driver;
  test::memory_log log;
  std::string trace;
  std::map<std::string, caf::actor> now;
  std::optional<error> end;
  int kills_needed{0};
  actor_runtime runtime{driver.make_executor(), driver, log};
  caf::actor supervisor;

  supervised_child child(const std::string& id, restart_type type = restart_type::permanent) {
    return {{id, type, 1s}, [this, id](caf::actor_system& system) { return system.spawn(body(id)); }};
  }
  // Fails with the text it is told; notes its end.
  std::function<caf::behavior(caf::event_based_actor*)> body(const std::string& id) {
    return [this, id](caf::event_based_actor* self) -> caf::behavior {
      self->attach_functor([this, id](const caf::error&) { trace += "-" + id; });
      return {
          [](const std::string& text) {
            throw actor_error{errc::bad_data, text};
          },
          [self](int) { self->quit(); },
          [this, self](bool) { self->set_exit_handler([this](caf::exit_msg&) { ++kills_needed; }); },
      };
    };
  }
  void start(std::vector<supervised_child> children, supervision_settings settings = {}) {
    supervisor = spawn_supervisor(runtime.system(),
                                  {settings, std::move(children), [this](const child_change& change) {
                                     trace += "+" + change.id;
                                     if (change.cause) trace += "(" + change.cause->text.substr(0, 4) + ")";
                                     CHECK((!now.contains(change.id) || change.before == now[change.id]));
                                     now[change.id] = change.after;
                                   }});
    supervisor->attach_functor([this](const caf::error& reason) { end = to_troupe(reason); });
    driver.settle();
  }
  std::string taken() { return std::exchange(trace, {}); }
  template <class T>
  void tell(const std::string& id, const T& what) {
    caf::anon_send(now.at(id), what);
    driver.settle();
  }
};

} // namespace

TEST_CASE("supervisor: a failed child is replaced, and its peers are told (SA-1)", "[supervisor]") {
  troupe_of_children t;
  t.start({t.child("a"), t.child("b")});
  CHECK(t.taken() == "+a+b");
  const auto old = t.now.at("a");
  t.tell("a", std::string{"torn shard"});
  CHECK(t.taken() == "-a+a(torn)");
  CHECK(t.now.at("a") != old);
  t.tell("b", 1); // ends normally: permanent, so it comes back after the back-off
  t.driver.advance(1s);
  CHECK(t.taken().starts_with("-b+b"));
}

TEST_CASE("supervisor: one_for_all and rest_for_one restart in order", "[supervisor]") {
  troupe_of_children t;
  t.start({t.child("a"), t.child("b"), t.child("c")}, {.strategy = restart_strategy::rest_for_one});
  t.taken();
  t.tell("b", std::string{"torn"});
  CHECK(t.taken() == "-b-c+b(torn)+c");
  troupe_of_children u;
  u.start({u.child("a"), u.child("b"), u.child("c")}, {.strategy = restart_strategy::one_for_all});
  u.taken();
  u.tell("b", std::string{"torn"});
  CHECK(u.taken() == "-b-c-a+a+b(torn)+c");
}

TEST_CASE("supervisor: a shutdown stops children in reverse order and waits for each (SV-1)",
          "[supervisor]") {
  troupe_of_children t;
  t.start({t.child("a"), t.child("b")});
  t.taken();
  caf::anon_send_exit(t.supervisor, caf::exit_reason::user_shutdown);
  t.driver.settle();
  CHECK(t.taken() == "-b-a");
  REQUIRE(t.end);
  CHECK(t.end->code == errc::actor_stopped);
}

TEST_CASE("supervisor: a child that ignores the stop is killed after its grace (SV-6)", "[supervisor]") {
  troupe_of_children t;
  t.start({t.child("a"), t.child("b")});
  t.tell("b", true); // traps exits
  t.taken();
  caf::anon_send_exit(t.supervisor, caf::exit_reason::user_shutdown);
  t.driver.advance(999ms);
  CHECK(t.kills_needed == 1);
  CHECK(t.taken().empty());
  t.driver.advance(1ms);
  CHECK(t.taken() == "-b-a");
  CHECK(t.end);
}

TEST_CASE("supervisor: too many restarts end it with the root cause (SV-4)", "[supervisor]") {
  troupe_of_children t;
  supervision_settings settings;
  settings.intensity = {2, 60s};
  t.start({t.child("a"), t.child("b")}, settings);
  for (const auto* text : {"one", "two", "three"}) {
    t.tell("a", std::string{text});
    t.driver.advance(1s);
  }
  REQUIRE(t.end);
  CHECK(t.end->code == errc::budget_spent);
  CHECK(t.end->text.starts_with("three ["));
  CHECK(t.end->text.find("[a]") != std::string::npos);
  CHECK(t.runtime.counters().alive == 0); // the others ended before it
}

TEST_CASE("supervisor: the same failure three times escalates, unless work progressed (SV-5)",
          "[supervisor]") {
  for (const bool progress : {false, true}) {
    troupe_of_children t;
    t.start({t.child("a")});
    for (int i = 0; i < 3; ++i) {
      t.tell("a", std::string{"label 12"});
      t.driver.advance(1s);
      if (progress) caf::anon_send(t.supervisor, work_progressed{});
      t.driver.settle();
    }
    CHECK(t.end.has_value() == !progress);
  }
}

TEST_CASE("supervisor: a factory that throws is a failed child (SA-2)", "[supervisor]") {
  troupe_of_children t;
  int tries = 0;
  auto broken = t.child("a");
  broken.spawn = [&](caf::actor_system& system) -> caf::actor {
    if (++tries < 3) throw std::runtime_error{"try " + std::to_string(tries)};
    return system.spawn(t.body("a"));
  };
  t.start({broken, t.child("b")});
  t.driver.advance(1s);
  CHECK(tries == 3);
  CHECK(t.taken() == "+a(try )+b");
}

TEST_CASE("supervisor: killed, it takes its children along (SA-3)", "[supervisor]") {
  troupe_of_children t;
  t.start({t.child("a"), t.child("b")});
  t.tell("b", true); // traps exits: no help
  caf::anon_send_exit(t.supervisor, caf::exit_reason::kill);
  t.driver.settle();
  CHECK(t.runtime.counters().alive == 0);
}

TEST_CASE("supervisor: supervisors nest; the inner one's escalation is the outer one's failure",
          "[supervisor]") {
  troupe_of_children t;
  supervision_settings strict;
  strict.intensity = {0, 60s};
  supervised_child inner{{"inner", restart_type::permanent, 5s}, [&](caf::actor_system& system) {
                           return spawn_supervisor(system,
                                                   {strict, {t.child("leaf")}, [&](const child_change& c) {
                                                      t.trace += "+" + c.id;
                                                      t.now[c.id] = c.after;
                                                    }});
                         }};
  t.start({inner});
  CHECK(t.taken() == "+inner+leaf");
  t.tell("leaf", std::string{"torn"});
  CHECK(t.taken() == "-leaf+inner(torn)+leaf");
}
