// The fault injector: every kind of the plan strikes, is noted before, and strikes once (FI-1 to FI-3).
#include <new>
#include <stdexcept>
#include <string>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include "actors/faults/fault_injector.hpp"

namespace troupe {
namespace {

class still_clock final : public clock_seam {
public:
  [[nodiscard]] time_point now() const override { return time_from_ns(1'000'000); }
  timer_id call_after(duration, task) override { return 1; }
  void cancel(timer_id) override {}
};

class struck_self final : public own_process {
public:
  void raise_signal(int number) override { blows.push_back("signal " + std::to_string(number)); }
  void exit_now(int code) override { blows.push_back("exit " + std::to_string(code)); }
  std::vector<std::string> blows;
};

// Rank 0 of a job with that one fault.
struct struck_rank {
  explicit struck_rank(const std::string& spec)
      : what{parse_fault(spec).value()} {
    injector.update(rank_id{0}, 1, "", clock.now());
  }
  // What the fault did, in one word; empty: nothing.
  std::string step(std::uint64_t number) {
    self.blows.clear();
    try {
      injector.on_step(step_id{number});
      injector.on_read(step_id{number});
    } catch (const std::bad_alloc&) {
      return "out of memory";
    } catch (const std::runtime_error&) {
      return "thrown";
    }
    return self.blows.empty() ? switched() : self.blows.front();
  }
  std::string switched() {
    const auto now = clock.now();
    for (const auto* one :
         {&switches.slow_worker, &switches.slow_reader, &switches.slow_storage, &switches.full_storage,
          &switches.cut_in, &switches.cut_out, &switches.clog, &switches.hang}) {
      if (one->on(now)) return "switched";
    }
    for (auto* one : {&switches.skip, &switches.nan, &switches.torn_write, &switches.path_error}) {
      if (one->take()) return "switched";
    }
    return switches.clock_ahead_ns != 0 ? "switched" : "";
  }

  fault what;
  still_clock clock;
  struck_self self;
  black_box box;
  fault_switches switches{clock};
  fault_injector injector{{what}, 7, {clock, self, box, &switches, [this](const std::string& which) {
                                        self.blows.push_back(which);
                                      }}};
};

TEST_CASE("fault injector: every kind that aims at a process strikes there, and is noted (FI-1, FI-3)") {
  for (const auto name : fault_names()) {
    if (name == "director-kill") continue; // the director strikes itself
    INFO(name);
    struck_rank one{std::string{name} + "@step=3" + (name == "clock-step" ? ",for=1s" : "")};
    CHECK(one.step(2).empty());
    CHECK(one.box.fault_index == 0);
    const auto blow = one.step(3);
    CHECK_FALSE(blow.empty());
    CHECK((blow == "switched") == strikes_seam(one.what.kind));
    CHECK(one.box.fault_index == 1);
    CHECK(one.box.fault_ns == 1'000'000);
  }
}

TEST_CASE("fault injector: a reader is struck where it reads, not where its rank computes") {
  struck_rank one{"slow:prefetcher=0@step=3"};
  one.injector.on_step(step_id{3});
  CHECK_FALSE(one.switches.slow_reader.on(one.clock.now()));
  one.injector.on_read(step_id{3});
  CHECK(one.switches.slow_reader.on(one.clock.now()));
}

TEST_CASE("fault injector: its own strike is not forgotten where the director knows nothing of it (FI-2)") {
  struck_rank one{"nan:worker=0@step=3"};
  CHECK(one.step(3) == "switched");
  one.injector.update(rank_id{0}, 1, "", one.clock.now()); // the step is computed again
  CHECK(one.step(3).empty());
}

TEST_CASE("fault injector: a strike that the director cannot see is told first, and waits (FI-1, FI-2)") {
  still_clock clock;
  struck_self self;
  black_box box;
  std::vector<std::size_t> told;
  fault_injector injector{{parse_fault("kill:worker=0@step=3").value()},
                          7,
                          {clock, self, box, nullptr, [](const std::string&) {},
                           [&told](std::size_t fault) { told.push_back(fault); }}};
  injector.update(rank_id{0}, 1, "", clock.now());
  CHECK(injector.ready(step_id{2}));
  injector.on_step(step_id{2});
  CHECK_FALSE(injector.ready(step_id{3}));
  CHECK(told == std::vector<std::size_t>{0});
  injector.hear(""); // a heartbeat that crossed it
  CHECK_FALSE(injector.ready(step_id{3}));
  fired_faults known;
  known.mark(0, rank_id{0});
  injector.update(rank_id{0}, 1, "", clock.now()); // a new generation meanwhile: it still strikes
  injector.hear(known.encode());
  REQUIRE(injector.ready(step_id{3}));
  injector.on_step(step_id{3});
  CHECK(self.blows == std::vector<std::string>{"signal 9"});
  CHECK(told.size() == 1);
  CHECK(injector.ready(step_id{4})); // once is enough
}

} // namespace
} // namespace troupe
