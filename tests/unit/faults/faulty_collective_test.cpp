// The faulty collective over simulated ones: late, skipped, not a number (FC-1, CO-2, CO-4).
#include <cmath>
#include <memory>
#include <optional>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include "runtime/faults/faulty_collective.hpp"
#include "runtime/sim/sim_collective.hpp"
#include "runtime/sim/sim_network.hpp"

namespace troupe {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t plenty = 100'000;

struct idle_program final : sim_program {};

// Two ranks; the second one's collective is faulty.
struct two_ranks {
  two_ranks() {
    prepared = hub.make_collective(start());
    const auto place = prepared->prepare(shape);
    REQUIRE(place);
    for (std::uint32_t rank = 0; rank < 2; ++rank) {
      processes.push_back(&start());
      seams.push_back(hub.make_collective(*processes.back()));
    }
    settle();
    auto& struck = *processes[1];
    switches = std::make_unique<fault_switches>(struck.clock);
    faulty = std::make_unique<faulty_collective>(
        *seams[1], collective_surroundings{struck.loop, struck.clock, struck.device_queue, *switches});
    members.push_back(std::move(seams[0]->connect(*place, shape, rank_id{0}).value()));
    members.push_back(std::move(faulty->connect(*place, shape, rank_id{1}).value()));
    answers.resize(2);
    for (auto& member : members)
      std::ranges::fill(member->contribution(0), 1.0F);
  }
  sim_process& start() {
    return world.start({}, 0ns, [](sim_process&) { return std::make_unique<idle_program>(); });
  }
  void settle() {
    (void)world.run_until([] { return false; }, plenty);
  }
  // As a step engine does: on the device.
  void reduce(std::uint32_t rank) {
    answers[rank].reset();
    processes[rank]->device_queue.post([this, rank] {
      members[rank]->all_reduce([this, rank](expected<reduction> done) {
        answered_at = world.now();
        answers[rank].emplace(std::move(done));
      });
    });
  }
  void reduce_all() {
    reduce(0);
    reduce(1);
    settle();
  }
  void strike(const char* spec) { switches->turn_on(parse_fault(spec).value()); }

  sim_world world{1};
  sim_collective_hub hub{world};
  collective_shape shape{generation_id{1}, 2, 2, 32, 1024};
  std::unique_ptr<collective> prepared;
  std::vector<sim_process*> processes;
  std::vector<std::unique_ptr<collective>> seams;
  std::unique_ptr<fault_switches> switches;
  std::unique_ptr<faulty_collective> faulty;
  std::vector<std::unique_ptr<communicator>> members;
  std::vector<std::optional<expected<reduction>>> answers;
  time_point answered_at;
};

TEST_CASE("faulty collective: rank groups are those of the inner communicator") {
  two_ranks both;
  auto* group = both.members[1]->group();
  REQUIRE(group != nullptr);
  CHECK(group->rank() == 1);
  CHECK(group->world() == 2);
}

TEST_CASE("faulty collective: the network is lent to the inner one") {
  struct borrower final : collective {
    expected<std::string> prepare(const collective_shape&) override { return std::string{}; }
    expected<std::unique_ptr<communicator>> connect(const std::string&, const collective_shape&,
                                                    rank_id) override {
      return error{errc::aborted, "never"};
    }
    void attach(transport* network) override { lent.push_back(network); }
    void set_unreachable_handler(unreachable_handler handler) override { tells = std::move(handler); }
    unreachable_handler tells;
    std::vector<transport*> lent;
  };
  two_ranks both;
  borrower inner;
  auto& struck = *both.processes[1];
  faulty_collective outer{inner, {struck.loop, struck.clock, struck.device_queue, *both.switches}};
  sim_network net{both.world, {}};
  const auto network = net.make_transport(struck, incarnation_id{1, 2});
  outer.attach(network.get());
  outer.attach(nullptr);
  bool told = false;
  outer.set_unreachable_handler([&told](generation_id, incarnation_id, const error&) { told = true; });
  inner.tells(generation_id{1}, incarnation_id{1, 2}, error{errc::path_lost, "ended"});
  CHECK(told);
  CHECK(inner.lent == std::vector<transport*>{network.get(), nullptr});
}

TEST_CASE("faulty collective: without a fault sums are the communicator's own, number and all (CO-4)") {
  two_ranks both;
  for (std::uint64_t step = 1; step <= 3; ++step) {
    both.reduce_all();
    for (const auto& answer : both.answers) {
      REQUIRE((answer && *answer));
      CHECK((*answer)->sum[5] == 2.0F);
      CHECK((*answer)->number == step);
    }
  }
}

TEST_CASE("faulty collective: who hangs has not arrived, and enters when its time is over (FC-1)") {
  two_ranks both;
  const auto began = both.world.now();
  both.strike("hang-in-collective:worker=1@step=1,for=700ms");
  both.reduce(0);
  both.reduce(1);
  bool looked = false;
  both.world.after(600ms, [&] {
    looked = true;
    CHECK(both.members[1]->arrivals() == std::vector<std::uint64_t>{1, 0});
  });
  both.settle();
  CHECK(looked);
  REQUIRE((both.answers[1] && *both.answers[1]));
  CHECK((*both.answers[1])->number == 1);
  CHECK(both.answered_at - began >= 700ms);
}

TEST_CASE("faulty collective: who hangs for ever is freed by an abort (CO-2)") {
  two_ranks both;
  both.strike("hang-in-collective:worker=1@step=1");
  both.reduce_all();
  CHECK_FALSE(both.answers[0]);
  CHECK_FALSE(both.answers[1]);
  both.members[1]->abort();
  both.settle();
  for (const auto& answer : both.answers) {
    REQUIRE(answer);
    CHECK(answer->failure().code == errc::aborted);
  }
}

TEST_CASE("faulty collective: a hanging communicator may go before its time comes") {
  two_ranks both;
  both.strike("hang-in-collective:worker=1@step=1,for=1s");
  both.reduce(1);
  (void)both.world.run_until([&] { return both.world.now().time_since_epoch() > 100ms; }, 10);
  both.members.pop_back();
  both.settle();
  CHECK_FALSE(both.answers[1]);
}

TEST_CASE("faulty collective: who skips gets its own part, and a receipt that gives it away (CO-4)") {
  two_ranks both;
  both.reduce_all();
  both.strike("skip-collective:worker=1@step=2");
  both.reduce_all();
  CHECK_FALSE(both.answers[0]); // waits for a rank that never comes
  REQUIRE((both.answers[1] && *both.answers[1]));
  CHECK((*both.answers[1])->sum[5] == 1.0F);
  CHECK((*both.answers[1])->number == 1); // of the sum before
}

TEST_CASE("faulty collective: one value of one contribution is not a number, once") {
  two_ranks both;
  both.strike("nan:worker=1@step=1");
  both.reduce_all();
  CHECK(std::isnan((*both.answers[0])->sum[0]));
  CHECK((*both.answers[0])->sum[1] == 2.0F);
  std::ranges::fill(both.members[1]->contribution(0), 1.0F);
  both.reduce_all();
  CHECK((*both.answers[0])->sum[0] == 2.0F);
}

TEST_CASE("faulty collective: a slow worker keeps its device busy for longer") {
  two_ranks quick;
  two_ranks slow;
  slow.strike("slow:worker=1@step=1,factor=50");
  for (auto* both : {&quick, &slow}) {
    both->reduce_all();
    both->processes[1]->device_queue.post([both] { both->answered_at = both->world.now(); });
    both->settle();
  }
  CHECK(slow.answered_at.time_since_epoch() > 10 * quick.answered_at.time_since_epoch());
}

} // namespace
} // namespace troupe
