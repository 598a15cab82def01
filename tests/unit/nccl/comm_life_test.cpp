#include <cstdint>
#include <deque>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include "transports/nccl/comm_life.hpp"

namespace troupe {
namespace {

constexpr generation_id first{1};
constexpr time_point start{};

// What NCCL's rules allow, told by the orders as they are carried out.
class rule_book {
public:
  enum class handle : std::uint8_t { absent, beginning, live, finalizing, revoked, shrunk, aborting };

  explicit rule_book(const nccl::features& has)
      : has_{has} {}

  // Empty, or the rule that an order breaks.
  [[nodiscard]] std::string carry_out(const life_order& order) {
    const auto generation = static_cast<std::uint32_t>(order.generation.value());
    switch (order.what) {
    case life_action::init:
      if (main_ != handle::absent || child_ != handle::absent) return "NC-5: init beside another one";
      main_ = handle::beginning;
      return {};
    case life_action::shrink:
      if (!has_.shrink) return "NC-9: shrink";
      if (main_ != handle::live && main_ != handle::revoked) return "NC-6: shrink of a dead parent";
      main_ = handle::shrunk;
      child_ = handle::beginning;
      return {};
    case life_action::revoke:
      if (!has_.revoke) return "NC-9: revoke";
      if (main_ != handle::live) return "NC-6: revoke";
      main_ = handle::revoked;
      return {};
    case life_action::finalize:
      if (main_ != handle::live) return "NC-6: finalize";
      open_.erase(generation);
      main_ = handle::finalizing;
      return {};
    case life_action::destroy:
      if (main_ != handle::finalizing) return "NC-6: destroy";
      main_ = handle::absent;
      return {};
    case life_action::abort_parent:
      if (main_ != handle::shrunk) return "NC-6: only the parent of a shrink is aborted alone";
      child_ = handle::live;
      main_ = handle::aborting;
      return {};
    case life_action::abort_all:
      if (main_ == handle::aborting || child_ == handle::aborting) return "NC-5: aborted twice";
      if (!open_.empty()) return "NC-3: aborted before its work was poisoned";
      for (auto* one : {&main_, &child_})
        if (*one != handle::absent) *one = handle::aborting;
      aborting_ = true;
      return {};
    case life_action::drain:
      if (aborting_) return "NC-5: drained during the abort";
      draining_ = true;
      return {};
    case life_action::poison:
      open_.erase(generation);
      poisoned_.insert(generation);
      return {};
    case life_action::announce:
      if (poisoned_.contains(generation)) return "NC-3: ready after it was poisoned";
      if (aborting_ || draining_) return "NC-5: ready before the stream came to rest";
      main_ = handle::live;
      open_.insert(generation);
      return {};
    case life_action::end_process:
      ended_ = true;
      return {};
    }
    return "unknown order";
  }
  [[nodiscard]] bool abort_runs() const { return main_ == handle::aborting || aborting_; }
  [[nodiscard]] bool drain_runs() const { return draining_; }
  [[nodiscard]] bool ended() const { return ended_; }
  void abort_returned() {
    aborting_ = false;
    main_ = child_ == handle::live ? child_ : handle::absent;
    child_ = handle::absent;
  }
  void drain_returned() { draining_ = false; }
  [[nodiscard]] std::string text() const {
    std::string all{static_cast<char>('0' + static_cast<int>(main_)),
                    static_cast<char>('0' + static_cast<int>(child_)), aborting_ ? 'a' : '-',
                    draining_ ? 'd' : '-', ended_ ? 'e' : '-'};
    for (const auto* set : {&open_, &poisoned_}) {
      all += '|';
      for (const auto generation : *set)
        all += std::to_string(generation);
    }
    return all;
  }

private:
  nccl::features has_;
  handle main_{handle::absent};
  handle child_{handle::absent};
  bool aborting_{false};
  bool draining_{false};
  bool ended_{false};
  std::set<std::uint32_t> open_; // announced, neither poisoned nor closed
  std::set<std::uint32_t> poisoned_;
};

struct world {
  comm_life life;
  rule_book rules;
  life_origin newest_origin{life_origin::fresh};
  std::string path;

  void take(const char* event, const life_orders& orders) {
    path += ' ';
    path += event;
    for (const auto& order : orders) {
      const auto broken = rules.carry_out(order);
      INFO(path << ": " << to_string(life.state()));
      REQUIRE(broken == "");
    }
    check();
  }
  void check() const {
    INFO(path << ": " << to_string(life.state()));
    const auto state = life.state();
    const bool rests = state == life_state::none || state == life_state::ready || state == life_state::stuck;
    REQUIRE(life.deadline().has_value() == !rests); // NC-4
    REQUIRE(rules.ended() == (state == life_state::stuck));
    if (rules.abort_runs()) REQUIRE(!life.may_allocate() == (state != life_state::none)); // NC-7
    for (std::uint64_t g = 1; g <= life.newest().value(); ++g)
      if (life.may_issue(generation_id{g})) REQUIRE(state == life_state::ready); // NC-2
  }
  [[nodiscard]] std::string key() const {
    std::string all = std::string{to_string(life.state())} + ' ' + to_string(life.generation()) +
                      to_string(life.newest()) + (newest_origin == life_origin::fresh ? 'f' : 's') +
                      (life.asks_status() ? '?' : '-');
    for (std::uint64_t g = 1; g <= life.newest().value(); ++g)
      all += life.expects(generation_id{g}) ? 'x' : '-';
    return all + rules.text();
  }
};

// Every event that can happen next, each on a copy.
void successors(const world& from, const std::function<void(world)>& visit) {
  const auto then = [&](const char* name, const auto& event) {
    world next = from;
    const auto orders = event(next);
    next.take(name, orders);
    visit(std::move(next));
  };
  const auto& life = from.life;
  constexpr std::uint64_t generations_max = 3;
  if (life.newest().value() < generations_max)
    for (const auto origin : {life_origin::fresh, life_origin::shrunk})
      then(origin == life_origin::fresh ? "begin" : "begin-shrunk", [&](world& w) {
        w.newest_origin = origin;
        return w.life.begin(start, w.life.newest().next(), origin);
      });
  for (std::uint64_t g = 1; g <= life.newest().value(); ++g) {
    const generation_id generation{g};
    then("fault", [&](world& w) { return w.life.fault(start, generation, {errc::aborted, "test"}); });
    then("close", [&](world& w) { return w.life.close(start, generation); });
    then("late", [&](world& w) { return w.life.status(start, generation, call_status::under_way); });
    const bool concerned = life.asks_status() || life.state() == life_state::ready;
    if (generation == life.generation() && !concerned) continue;
    then("failed", [&](world& w) { return w.life.status(start, generation, call_status::failed, "test"); });
    then("done", [&](world& w) { return w.life.status(start, generation, call_status::done); });
  }
  for (const bool clean : {true, false}) {
    if (from.rules.abort_runs())
      then(clean ? "aborted" : "abort-failed", [&](world& w) {
        w.rules.abort_returned();
        return w.life.aborted(start, clean);
      });
    if (from.rules.drain_runs())
      then(clean ? "drained" : "drain-failed", [&](world& w) {
        w.rules.drain_returned();
        return w.life.drained(start, clean);
      });
  }
  then("early-tick", [](world& w) { return w.life.tick(start); });
  if (life.deadline()) then("tick", [](world& w) { return w.life.tick(*w.life.deadline()); });
}

// With nobody's help, deadlines alone lead to rest.
void comes_to_rest(world from) {
  for (int ticks = 0; from.life.deadline(); ++ticks) {
    INFO(from.path);
    REQUIRE(ticks < 6);
    from.take("tick", from.life.tick(*from.life.deadline()));
  }
}

std::size_t explore(const nccl::features& has, bool hold) {
  std::set<std::string> seen;
  std::deque<world> open;
  const auto visit = [&](world next) {
    if (seen.insert(next.key()).second) open.push_back(std::move(next));
  };
  visit({comm_life{has, {.hold_for_shrink = hold}}, rule_book{has}, life_origin::fresh, {}});
  while (!open.empty()) {
    const world next = std::move(open.front());
    open.pop_front();
    comes_to_rest(next);
    successors(next, visit);
  }
  return seen.size();
}

TEST_CASE("communicator's life: no sequence of events breaks a rule of NCCL, and deadlines alone end every "
          "wait (NC-1 to NC-9)") {
  for (const int version : {21400, 22703, 22809, 23004})
    for (const bool hold : {false, true}) {
      CAPTURE(version, hold);
      CHECK(explore(nccl::features::of(version), hold) > 100);
    }
}

// --- single stories, as documentation ---

constexpr auto features_2_28 = nccl::features::of(22809);

std::vector<life_action> actions(const life_orders& orders) {
  std::vector<life_action> all;
  for (const auto& order : orders)
    all.push_back(order.what);
  return all;
}
using list = std::vector<life_action>;

comm_life made_ready(const nccl::features& has, const life_settings& settings = {}) {
  comm_life life{has, settings};
  CHECK(actions(life.begin(start, first, life_origin::fresh)) == list{life_action::init});
  CHECK(actions(life.status(start, first, call_status::done)) == list{life_action::announce});
  return life;
}

TEST_CASE("communicator's life: a fault poisons, aborts, drains, and the next generation begins (NC-3)") {
  auto life = made_ready(features_2_28);
  CHECK(actions(life.fault(start, first, {errc::aborted, "a peer died"})) ==
        list{life_action::poison, life_action::abort_all});
  CHECK(life.failure().text == "a peer died");
  CHECK(life.fault(start, first, {errc::aborted, "again"}).empty());
  CHECK(life.begin(start, first.next(), life_origin::fresh).empty()); // it waits
  CHECK(!life.may_allocate());
  CHECK(actions(life.aborted(start, true)) == list{life_action::drain});
  CHECK(life.drained(start, true) == life_orders{{life_action::init, first.next()}});
}

TEST_CASE("communicator's life: an abort that does not return ends the process and says why (NC-4)") {
  const life_settings settings{.abort_deadline = std::chrono::seconds{10}};
  auto life = made_ready(features_2_28, settings);
  (void)life.fault(start, first, {errc::aborted, "a peer died"});
  CHECK(life.tick(start + std::chrono::milliseconds{9999}).empty());
  CHECK(actions(life.tick(start + std::chrono::seconds{10})) ==
        list{life_action::poison, life_action::end_process});
  CHECK(life.failure().text == "generation 1: NCCL's abort did not return within its deadline");
  CHECK(life.failure().code == errc::device_failed);
}

TEST_CASE("communicator's life: survivors shrink, and the parent is aborted (NC-6)") {
  auto life = made_ready(features_2_28, {.hold_for_shrink = true});
  CHECK(actions(life.fault(start, first, {errc::aborted, "a peer died"})) ==
        list{life_action::poison, life_action::revoke});
  CHECK(life.begin(start, first.next(), life_origin::shrunk).empty()); // until what was revoked is quiet
  CHECK(actions(life.status(start, first, call_status::done)) == list{life_action::shrink});
  CHECK(actions(life.status(start, first.next(), call_status::done)) == list{life_action::abort_parent});
  CHECK(!life.may_issue(first.next()));
  CHECK(actions(life.aborted(start, true)) == list{life_action::drain});
  CHECK(actions(life.drained(start, true)) == list{life_action::announce});
  CHECK(life.may_issue(first.next()));
}

TEST_CASE("communicator's life: a library without shrink aborts at once (NC-9)") {
  auto life = made_ready(nccl::features::of(22602), {.hold_for_shrink = true});
  CHECK(actions(life.fault(start, first, {errc::aborted, "a peer died"})) ==
        list{life_action::poison, life_action::abort_all});
}

TEST_CASE("NCCL features: each from its version on; result 8 is a time-out only where it is defined (NC-9)") {
  const auto old = nccl::features::of(21305);
  CHECK(!old.usable);
  CHECK(nccl::features::of(21400).usable);
  CHECK(!nccl::features::of(22605).shrink);
  CHECK(nccl::features::of(22703).shrink);
  CHECK(!nccl::features::of(22803).revoke);
  CHECK(nccl::features::of(22807).revoke);
  CHECK(nccl::text_of(nccl::result::eight, features_2_28) == "a code that this version does not define");
  CHECK(nccl::text_of(nccl::result::eight, nccl::features::of(23004)) == "a time-out inside NCCL");
  CHECK(nccl::version_text(22809) == "2.28.9");
  CHECK(nccl::version_text(2708) == "2.7.8");
}

} // namespace
} // namespace troupe
