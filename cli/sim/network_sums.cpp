#include "cli/sim/network_sums.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "runtime/base/counter_rng.hpp"
#include "transports/two_level/level_plan.hpp"
#include "transports/two_level/two_level_collective.hpp"

namespace troupe::sim {
namespace {

ring_settings settings_of(std::uint64_t seed) {
  const counter_rng random{seed, stream_of("sums over the network")};
  ring_settings settings{.piece_bytes = std::size_t{64} << random.bits(1) % 3};
  if (random.bits(2) % 2 == 1) settings.loop_bytes = 0;
  if (random.bits(0) % 3 == 1) settings.way = ring_way::exchange;
  if (random.bits(0) % 3 == 2) settings.way = ring_way::slices;
  return settings;
}

// Half of the seeds sums over the network between all, also where workers share hosts.
bool sums_in_levels(std::uint64_t seed) {
  return counter_rng{seed, stream_of("sums in two levels")}.bits(0) % 2 != 0;
}

} // namespace

class network_sums::watched_communicator final : public communicator {
public:
  watched_communicator(network_sums& sums, sim_process& owner, const collective_shape& shape,
                       std::unique_ptr<communicator> inner)
      : sums_{sums}
      , owner_{owner}
      , shape_{std::make_shared<const collective_shape>(shape)}
      , inner_{std::move(inner)} {}
  [[nodiscard]] std::span<float> contribution(std::size_t index) override {
    return inner_->contribution(index);
  }
  void all_reduce(all_reduce_done done) override {
    if (!owner_.alive()) return; // SW-3
    sums_.observer_.on_arrival(owner_.pid());
    auto held = std::make_shared<all_reduce_done>(std::move(done));
    inner_->all_reduce([&sums = sums_, &owner = owner_, shape = shape_, held](expected<reduction> sum) {
      if (!owner.alive()) return;
      if (!sum) return (*held)(std::move(sum));
      const auto number = sums.number_of(*shape, *sum); // before anybody goes on
      (*held)(std::move(sum));
      sums.observer_.on_taken(number, owner.pid());
    });
  }
  void abort() noexcept override { inner_->abort(); }
  [[nodiscard]] std::vector<std::uint64_t> arrivals() const override { return inner_->arrivals(); }
  [[nodiscard]] rank_group* group() override { return inner_->group(); }

private:
  network_sums& sums_;
  sim_process& owner_;
  std::shared_ptr<const collective_shape> shape_;
  std::unique_ptr<communicator> inner_;
};

class network_sums::watched_collective final : public collective {
public:
  watched_collective(network_sums& sums, sim_process& owner)
      : sums_{sums}
      , owner_{owner}
      , inside_{sums.hosts_->make_collective(owner)}
      , ring_{owner.loop, owner.device_queue, sums.settings_}
      , levels_{owner.loop, owner.device_queue, *inside_, ring_} {}
  [[nodiscard]] expected<std::string> prepare(const collective_shape& shape) override {
    const bool several = std::ranges::any_of(shape.members, [](const auto& each) { return each.host != 0; });
    by_levels_ = false;
    if (!sums_.levels_ || !several) return ring_.prepare(shape);
    const auto plan = level_plan::make(shape);
    by_levels_ = plan.has_value();
    return plan ? levels_.prepare(shape, *plan) : ring_.prepare(shape);
  }
  [[nodiscard]] std::string kind() const override { return by_levels_ ? "sim+ring" : ring_.kind(); }
  [[nodiscard]] expected<std::unique_ptr<communicator>>
  connect(const std::string& descriptor, const collective_shape& shape, rank_id rank) override {
    auto made = two_level_collective::made(descriptor) ? levels_.connect(descriptor, shape, rank)
                                                       : ring_.connect(descriptor, shape, rank);
    if (!made) return made.failure();
    return std::unique_ptr<communicator>{
        std::make_unique<watched_communicator>(sums_, owner_, shape, std::move(*made))};
  }
  void attach(transport* network) override { levels_.attach(network); }
  void set_unreachable_handler(unreachable_handler handler) override {
    levels_.set_unreachable_handler(std::move(handler));
  }

private:
  network_sums& sums_;
  sim_process& owner_;
  std::unique_ptr<collective> inside_;
  ring_collective ring_;
  two_level_collective levels_; // of these two
  bool by_levels_{false};       // what was prepared last
};

network_sums::network_sums(std::uint64_t seed, sim_collective_observer& observer)
    : settings_{settings_of(seed)}
    , levels_{sums_in_levels(seed)}
    , observer_{observer} {}

std::unique_ptr<collective> network_sums::make_collective(sim_world& world, sim_process& owner,
                                                          incarnation_id self) {
  if (!hosts_) hosts_.emplace(world);
  pids_[self] = owner.pid();
  return std::make_unique<watched_collective>(*this, owner);
}

// Whoever has it first says that it was made.
std::uint64_t network_sums::number_of(const collective_shape& shape, const reduction& sum) {
  const auto next = numbers_.size() + 1;
  const sum_key key{shape.members.front().incarnation, shape.generation, sum.number};
  const auto [place, fresh] = numbers_.emplace(key, next);
  if (!fresh) return place->second;
  std::vector<std::int64_t> pids;
  for (const auto& member : shape.members)
    pids.push_back(pids_.at(member.incarnation));
  observer_.on_sum(next, shape, pids, sum.sum);
  return next;
}

} // namespace troupe::sim
