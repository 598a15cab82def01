#include "tests/unit/collective/group_worlds.hpp"

#include <map>

#include "runtime/sim/sim_collective.hpp"
#include "tests/support/manual_executor.hpp"
#include "transports/loopback/collective/loopback_collective.hpp"

namespace troupe::group_worlds {

record& player::add(rank_group& group) {
  auto& made = records_.emplace_back();
  made.group = &group;
  return made;
}

void player::start(rank_group& group, record& made) {
  group.start(made.what, [this, &made](expected<void> result) {
    ++made.dones;
    made.place = done_++;
    made.result.emplace(std::move(result));
    if (made.then) made.then();
  });
}

record& player::call(rank_group& group, group_operation what, bytes in, std::size_t out_bytes) {
  auto& made = add(group);
  made.in = std::move(in);
  made.out.assign(out_bytes, untouched);
  made.what = what;
  made.what.in = made.in;
  made.what.out = made.out;
  start(group, made);
  return made;
}

record& player::call_in_place(rank_group& group, group_operation what, bytes memory) {
  auto& made = add(group);
  made.out = std::move(memory);
  made.what = what;
  made.what.in = made.out;
  made.what.out = made.out;
  start(group, made);
  return made;
}

rank_group* player::split(rank_group& group, const std::vector<std::uint32_t>& ranks) {
  auto made = group.split(ranks);
  splits_.push_back(made ? std::nullopt : std::optional{made.failure()});
  if (!made || *made == nullptr) return nullptr;
  kept_.push_back(std::move(*made));
  return kept_.back().get();
}

bool player::all_done_in_order() const {
  std::map<const rank_group*, std::size_t> last;
  for (const auto& one : records_) {
    if (one.dones != 1) return false;
    const auto [found, first] = last.emplace(one.group, one.place);
    if (!first && one.place < std::exchange(found->second, one.place)) return false;
  }
  return true;
}

namespace {

class blocking_world final : public group_world {
public:
  explicit blocking_world(std::unique_ptr<worlds::world> inner)
      : inner_{std::move(inner)} {}
  [[nodiscard]] std::string name() const override { return inner_->name(); }
  [[nodiscard]] bool blocks() const override { return true; }
  [[nodiscard]] std::vector<int> play(const collective_shape& shape, const part& played) override {
    return inner_->run(shape, [&](communicator& member, std::uint32_t rank) {
      player one{member, rank};
      played.issue(one);
      return played.check(one);
    });
  }

private:
  std::unique_ptr<worlds::world> inner_;
};

// All ranks issue, the first or the last one first; then everything runs; then all check.
template <class Connect, class Settle>
std::vector<int> play_alone(const collective_shape& shape, const part& played, bool first_first,
                            Connect connect, Settle settle) {
  std::vector<std::unique_ptr<communicator>> members;
  std::deque<player> players;
  for (std::uint32_t rank = 0; rank < shape.world; ++rank) {
    auto made = connect(rank);
    if (!made) return {worlds::not_connected};
    members.push_back(std::move(*made));
    players.emplace_back(*members.back(), rank);
  }
  for (std::uint32_t i = 0; i < shape.world; ++i)
    played.issue(players[first_first ? i : shape.world - 1 - i]);
  settle();
  std::vector<int> results;
  for (auto& one : players)
    results.push_back(played.check(one));
  return results;
}

class executor_world final : public group_world {
public:
  [[nodiscard]] std::string name() const override { return "loopback, one thread"; }
  [[nodiscard]] std::vector<int> play(const collective_shape& shape, const part& played) override {
    const auto place = ranks_.prepare(shape);
    if (!place) return {worlds::not_connected};
    return play_alone(
        shape, played, std::exchange(first_first_, !first_first_),
        [&](std::uint32_t rank) { return ranks_.connect(*place, shape, rank_id{rank}); },
        [&] { device_.run_all(); });
  }

private:
  loopback_hall hall_;
  bool first_first_{false}; // by turns
  test::manual_executor device_{1U << 14U};
  loopback_collective ranks_{hall_, &device_};
};

struct idle_program final : sim_program {};

class simulated_world final : public group_world {
public:
  explicit simulated_world(std::uint64_t seed)
      : world_{seed} {}
  [[nodiscard]] std::string name() const override { return "simulation"; }
  [[nodiscard]] std::vector<int> play(const collective_shape& shape, const part& played) override {
    auto director = hub_.make_collective(start());
    const auto place = director->prepare(shape);
    if (!place) return {worlds::not_connected};
    std::vector<std::unique_ptr<collective>> seams;
    for (std::uint32_t rank = 0; rank < shape.world; ++rank)
      seams.push_back(hub_.make_collective(start()));
    settle();
    return play_alone(
        shape, played, world_.draw(2) == 0,
        [&](std::uint32_t rank) { return seams[rank]->connect(*place, shape, rank_id{rank}); },
        [&] { settle(); });
  }

private:
  sim_process& start() {
    return world_.start({}, duration{0}, [](sim_process&) { return std::make_unique<idle_program>(); });
  }
  void settle() {
    (void)world_.run_until([] { return false; }, 1'000'000);
  }

  sim_world world_;
  sim_collective_hub hub_{world_};
};

} // namespace

std::unique_ptr<group_world> blocking(std::unique_ptr<worlds::world> inner) {
  return std::make_unique<blocking_world>(std::move(inner));
}
std::unique_ptr<group_world> loopback_executor() {
  return std::make_unique<executor_world>();
}
std::unique_ptr<group_world> simulated(std::uint64_t seed) {
  return std::make_unique<simulated_world>(seed);
}

} // namespace troupe::group_worlds
