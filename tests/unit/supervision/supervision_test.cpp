#include <deque>
#include <map>
#include <string>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/generators/catch_generators_range.hpp>

#include "runtime/policy/supervision.hpp"

namespace {

using namespace troupe;
using namespace std::chrono_literals;

const error torn{errc::bad_data, "shard 3 is torn"};
const error lost{errc::device_failed, "device lost"};

// Carries the actions out on paper: children start at once, and end when the test says so.
struct stage {
  stage(supervision_settings settings, std::vector<child_spec> specs)
      : machine{settings, std::move(specs)} {}

  void take(const supervision_actions& actions) {
    todo.insert(todo.end(), actions.begin(), actions.end());
    if (std::exchange(busy, true)) return; // what an action sets off comes after it
    for (; !todo.empty(); todo.pop_front())
      std::visit([this](const auto& what) { act(what); }, todo.front());
    busy = false;
  }
  void start() { take(machine.start(now)); }
  void stop() { take(machine.stop(now)); }
  void fail(child_index child, const error& cause = torn) {
    take(machine.child_ended(child, life.at(child), cause, now));
  }
  void end(child_index child) { take(machine.child_ended(child, life.at(child), std::nullopt, now)); }
  // Fires the newest timer of that many still to fire.
  void fire() {
    REQUIRE(!timers.empty());
    const auto [timer, delay] = timers.back();
    timers.pop_back();
    now += delay;
    take(machine.timer_fired(timer, now));
  }
  std::string taken() { return std::exchange(log, {}); }

  void act(const start_child& what) {
    log += "+" + name(what.child);
    CHECK(what.life == life[what.child] + 1); // SV-2
    life[what.child] = what.life;
    after = what.after;
    if (refuse == what.child) {
      take(machine.child_ended(what.child, what.life, lost, now));
    } else if (!slow_start) {
      take(machine.child_started(what.child, what.life, now));
    }
  }
  void act(const stop_child& what) {
    log += "-" + name(what.child);
    if (obedient) end(what.child);
  }
  void act(const kill_child& what) { log += "x" + name(what.child); }
  void act(const set_timer& what) { timers.emplace_back(what.timer, what.delay); }
  void act(const escalated& what) {
    log += "!";
    verdict = what.cause;
    ++ends;
  }
  void act(const supervision_stopped&) {
    log += ".";
    ++ends;
  }
  std::string name(child_index child) const { return machine.children()[child].id; }

  supervision machine;
  time_point now{1h};
  std::map<child_index, child_life> life;
  std::vector<std::pair<std::uint64_t, duration>> timers;
  std::deque<supervision_action> todo;
  bool busy{false};
  std::string log;
  std::optional<error> after;
  std::optional<error> verdict;
  int ends{0};
  bool obedient{true};
  bool slow_start{false};
  std::optional<child_index> refuse;
};

supervision_settings with(restart_strategy strategy, std::uint32_t restarts_max = 100) {
  supervision_settings settings;
  settings.strategy = strategy;
  settings.intensity = {restarts_max, 60s};
  settings.same_cause_max = 1000;
  settings.pause = {.initial = 10ms, .max = 100ms, .jitter = 0};
  return settings;
}

std::vector<child_spec> abc(restart_type type = restart_type::permanent) {
  return {{"a", type, 1s}, {"b", type, 2s}, {"c", type, 3s}};
}

} // namespace

TEST_CASE("supervision: children start in order and stop in reverse, one at a time (SV-1)", "[policy]") {
  stage s{with(restart_strategy::one_for_one), abc()};
  s.slow_start = true;
  s.start();
  CHECK(s.taken() == "+a");
  s.take(s.machine.child_started(0, 1, s.now));
  CHECK(s.taken() == "+b");
  s.take(s.machine.child_started(1, 1, s.now));
  s.take(s.machine.child_started(2, 1, s.now));
  s.taken();
  s.obedient = false;
  s.stop();
  CHECK(s.taken() == "-c");
  s.end(2);
  CHECK(s.taken() == "-b");
  s.end(1);
  s.end(0);
  CHECK(s.taken() == "-a.");
  CHECK(s.machine.ended());
}

TEST_CASE("supervision: with a failed child restart those that the strategy names (SV-3)", "[policy]") {
  const auto sequence = [](restart_strategy strategy, child_index failed) {
    stage s{with(strategy), abc()};
    s.start();
    s.taken();
    s.fail(failed);
    return s.taken();
  };
  CHECK(sequence(restart_strategy::one_for_one, 1) == "+b");
  CHECK(sequence(restart_strategy::one_for_all, 1) == "-c-a+a+b+c");
  CHECK(sequence(restart_strategy::rest_for_one, 1) == "-c+b+c");
  CHECK(sequence(restart_strategy::rest_for_one, 0) == "-c-b+a+b+c");
  CHECK(sequence(restart_strategy::rest_for_one, 2) == "+c");
}

TEST_CASE("supervision: the restart type decides who restarts", "[policy]") {
  struct expectation {
    restart_type type;
    bool after_failure;
    bool after_normal_end;
  };
  for (const auto& want :
       {expectation{restart_type::permanent, true, true}, expectation{restart_type::transient, true, false},
        expectation{restart_type::temporary, false, false}}) {
    stage s{with(restart_strategy::one_for_one), abc(want.type)};
    s.start();
    s.taken();
    s.fail(0);
    CHECK(s.taken() == (want.after_failure ? "+a" : ""));
    s.end(1);
    if (!s.timers.empty()) s.fire(); // the second restart backs off
    CHECK(s.taken() == (want.after_normal_end ? "+b" : ""));
    CHECK(s.ends == 0);
  }
}

TEST_CASE("supervision: a child that ended for good is not started with its group (SV-9)", "[policy]") {
  auto specs = abc(restart_type::transient);
  specs[1].restart = restart_type::temporary;
  stage s{with(restart_strategy::one_for_all), specs};
  s.start();
  s.end(2); // transient, normally
  s.taken();
  s.fail(0);
  CHECK(s.taken() == "-b+a"); // b is temporary: stopped, not restarted
}

TEST_CASE("supervision: the first restart is immediate, then waits double up to the bound", "[policy]") {
  stage s{with(restart_strategy::one_for_one), {{"a", restart_type::permanent, 1s}}};
  s.start();
  std::vector<duration> waits;
  for (int i = 0; i < 7; ++i) {
    s.fail(0);
    if (s.timers.empty()) continue;
    waits.push_back(s.timers.back().second);
    s.fire();
  }
  CHECK(waits == std::vector<duration>{10ms, 20ms, 40ms, 80ms, 100ms, 100ms});
  s.now += 61s; // a quiet period: from the start again
  s.fail(0);
  CHECK(s.timers.empty());
}

TEST_CASE("supervision: one restart too many within the period escalates (SV-4)", "[policy]") {
  for (const auto strategy :
       {restart_strategy::one_for_one, restart_strategy::one_for_all, restart_strategy::rest_for_one}) {
    stage s{with(strategy, 2), abc()};
    s.start();
    s.fail(0);
    s.fail(0);
    s.fire();
    s.taken();
    s.fail(0, lost);
    CHECK(s.taken() == "-c-b!"); // after every child's end (SV-7)
    REQUIRE(s.verdict);
    CHECK(s.verdict->code == errc::budget_spent);
    CHECK(s.verdict->text == "device lost [a] [after 2 restarts within 1min]");
    CHECK(s.ends == 1);
  }
}

TEST_CASE("supervision: the same restarts spread over longer periods do not escalate (SV-4)", "[policy]") {
  stage s{with(restart_strategy::one_for_one, 1), abc()};
  s.start();
  for (int i = 0; i < 20; ++i) {
    s.fail(0);
    s.now += 60s;
  }
  CHECK(s.ends == 0);
  CHECK(s.machine.restarts() == 20);
}

TEST_CASE("supervision: the same cause without progress escalates at the third time (SV-5)", "[policy]") {
  auto settings = with(restart_strategy::one_for_one);
  settings.same_cause_max = 3;
  const auto run = [&](auto between) {
    stage s{settings, abc()};
    s.start();
    for (int i = 0; i < 3; ++i) {
      s.fail(1, torn);
      while (!s.timers.empty())
        s.fire();
      between(s);
    }
    return s.verdict;
  };
  const auto verdict = run([](stage&) {});
  REQUIRE(verdict);
  CHECK(verdict->code == errc::budget_spent);
  CHECK(verdict->text == "shard 3 is torn [b] [3 times without progress]");
  CHECK(!run([](stage& s) { s.machine.progress(); }));
  CHECK(!run([](stage& s) { s.now += 61s; })); // living for a period is progress
  CHECK(run([](stage& s) {
    s.fail(0, error{errc::bad_data, s.name(0)});
    s.timers.clear();
  })); // another child's
}

TEST_CASE("supervision: different causes are no repetition (SV-5)", "[policy]") {
  auto settings = with(restart_strategy::one_for_one);
  settings.same_cause_max = 2;
  stage s{settings, abc()};
  s.start();
  for (const auto& cause : {torn, lost, torn, lost}) {
    s.fail(0, cause);
    while (!s.timers.empty())
      s.fire();
  }
  CHECK(s.ends == 0);
}

TEST_CASE("supervision: a child that ignores a stop is killed, then given up (SV-6)", "[policy]") {
  stage s{with(restart_strategy::one_for_one), abc()};
  s.start();
  s.taken();
  s.obedient = false;
  s.stop();
  CHECK(s.taken() == "-c");
  CHECK(s.timers.back().second == 3s);
  s.fire();
  CHECK(s.taken() == "xc");
  s.end(2); // the kill worked
  CHECK(s.taken() == "-b");
  s.fire();
  CHECK(s.taken() == "xb");
  s.fire(); // it did not
  CHECK(s.taken() == "-a");
  CHECK(s.machine.given_up() == 1);
  s.end(0);
  CHECK(s.taken() == ".");
  s.end(1); // much later after all
  CHECK(s.ends == 1);
}

TEST_CASE("supervision: ends of former lives and old timers change nothing (SV-8)", "[policy]") {
  stage s{with(restart_strategy::one_for_one), abc()};
  s.start();
  s.fail(0);
  s.taken();
  s.take(s.machine.child_ended(0, 1, torn, s.now)); // double down
  s.take(s.machine.child_started(0, 1, s.now));
  CHECK(s.taken().empty());
  s.fail(0); // backs off
  const auto timer = s.timers.back().first;
  s.fire();
  CHECK(s.taken() == "+a");
  s.take(s.machine.timer_fired(timer, s.now));
  s.take(s.machine.timer_fired(0, s.now));
  s.take(s.machine.timer_fired(999, s.now));
  CHECK(s.taken().empty());
}

TEST_CASE("supervision: a child that cannot be started counts as failed, with its cause", "[policy]") {
  auto settings = with(restart_strategy::one_for_one, 2);
  stage s{settings, abc()};
  s.refuse = 1;
  s.start();
  CHECK(s.taken() == "+a+b+b"); // the second wait is on
  s.fire();
  CHECK(s.taken() == "+b-a!"); // c was never started
  CHECK(s.verdict->text.starts_with("device lost [b]"));
}

TEST_CASE("supervision: a member that dies while its group stops is not counted again", "[policy]") {
  stage s{with(restart_strategy::one_for_all), abc()};
  s.start();
  s.taken();
  s.obedient = false;
  s.fail(1);
  CHECK(s.taken() == "-c");
  s.fail(0); // of the same common cause
  CHECK(s.taken().empty());
  s.end(2);
  CHECK(s.taken() == "+a+b+c");
  CHECK(s.machine.restarts() == 1);
}

TEST_CASE("supervision: an earlier child that dies while later ones regroup widens the group", "[policy]") {
  stage s{with(restart_strategy::rest_for_one), abc()};
  s.start();
  s.taken();
  s.obedient = false;
  s.fail(1);
  CHECK(s.taken() == "-c");
  s.fail(0);
  CHECK(s.taken().empty()); // c is still being stopped
  s.end(2);
  CHECK(s.taken().empty()); // two failures: it backs off
  s.fire();
  CHECK(s.taken() == "+a+b+c");
}

TEST_CASE("supervision: a child that dies while its group starts regroups it", "[policy]") {
  stage s{with(restart_strategy::one_for_all), abc()};
  s.slow_start = true;
  s.start();
  s.take(s.machine.child_started(0, 1, s.now));
  CHECK(s.taken() == "+a+b");
  s.fail(0);                  // while b starts
  CHECK(s.taken() == "-b+a"); // and c, not started yet, comes later
  s.take(s.machine.child_started(0, s.life[0], s.now));
  s.take(s.machine.child_started(1, s.life[1], s.now));
  CHECK(s.taken() == "+b+c");
}

TEST_CASE("supervision: a stop during a restart, a back-off or a start ends in order (SV-7)", "[policy]") {
  SECTION("while a group is being stopped") {
    stage s{with(restart_strategy::one_for_all), abc()};
    s.start();
    s.taken();
    s.obedient = false;
    s.fail(1);
    s.stop();
    CHECK(s.taken() == "-c");
    s.obedient = true;
    s.end(2);
    CHECK(s.taken() == "-a.");
  }
  SECTION("while a group backs off") {
    stage s{with(restart_strategy::one_for_all), abc()};
    s.start();
    s.fail(1);
    s.fail(1);
    REQUIRE(!s.timers.empty());
    s.taken();
    s.stop();
    CHECK(s.taken() == ".");
    s.fire();
    CHECK(s.taken().empty());
  }
  SECTION("while a child backs off") {
    stage s{with(restart_strategy::one_for_one), abc()};
    s.start();
    s.fail(1);
    s.fail(1);
    s.taken();
    s.stop();
    CHECK(s.taken() == "-c-a.");
    s.fire();
    CHECK(s.taken().empty());
  }
  SECTION("while a child starts") {
    stage s{with(restart_strategy::one_for_one), abc()};
    s.slow_start = true;
    s.start();
    s.taken();
    s.stop();
    CHECK(s.taken() == "-a.");
  }
  SECTION("before the start, and twice") {
    stage s{with(restart_strategy::one_for_one), abc()};
    s.stop();
    s.stop();
    CHECK(s.taken() == ".");
    s.start();
    CHECK(s.taken().empty());
  }
}

TEST_CASE("supervision: a restart tells what the former life died of", "[policy]") {
  stage s{with(restart_strategy::one_for_one), abc()};
  s.start();
  CHECK(!s.after);
  s.fail(0, lost);
  REQUIRE(s.after);
  CHECK(s.after->text == "device lost");
}

// Random events against the invariants that can be seen from outside.
TEST_CASE("supervision: random failures keep every invariant", "[policy]") {
  const auto seed = GENERATE(range(1, 60));
  const counter_rng random{static_cast<std::uint64_t>(seed), stream_of("supervision fuzz")};
  std::uint64_t draw = 0;
  const auto strategy = static_cast<restart_strategy>(random.bits(draw++) % 3);
  auto settings = with(strategy, 20);
  std::vector<child_spec> specs;
  for (int i = 0; i < 5; ++i)
    specs.push_back(
        {std::string(1, static_cast<char>('a' + i)), static_cast<restart_type>(random.bits(draw++) % 3), 1s});
  stage s{settings, specs};
  s.obedient = false;
  s.slow_start = true;
  s.start();
  for (int i = 0; i < 400 && !s.machine.ended(); ++i) {
    const auto child = static_cast<child_index>(random.bits(draw++) % 5);
    const auto life = s.life[child];
    s.now += 1ms;
    switch (random.bits(draw++) % 8) {
    case 0:
      s.take(s.machine.child_ended(child, life, torn, s.now));
      break;
    case 1:
      s.take(s.machine.child_ended(child, life, std::nullopt, s.now));
      break;
    case 2:
      if (!s.timers.empty()) s.fire();
      break;
    case 3:
      if (i > 300) s.stop();
      break;
    default:
      s.take(s.machine.child_started(child, life, s.now));
    }
  }
  s.stop();
  for (int i = 0; i < 40 && !s.machine.ended(); ++i) {
    if (!s.timers.empty()) s.fire(); // grace, then kill, then given up: it always ends (SV-6)
  }
  CHECK(s.machine.ended());
  CHECK(s.ends == 1); // SV-7
}
