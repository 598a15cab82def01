// Rank groups over the behavioural FAKE of NCCL: the world that the contract of rank groups is played in, in
// one thread and virtual time. What a call of an odd rank names counts as memory of its device.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include "tests/unit/collective/group_worlds.hpp"
#include "tests/unit/nccl/fake_world.hpp"
#include "transports/nccl/nccl_collective.hpp"

namespace troupe::fake {

// Lets the device adopt what a call names.
class adopting_group final : public rank_group {
public:
  adopting_group(fake_gpu& gpu, rank_group& inner)
      : gpu_{gpu}
      , inner_{&inner} {}
  adopting_group(fake_gpu& gpu, std::unique_ptr<rank_group> inner)
      : gpu_{gpu}
      , owned_{std::move(inner)}
      , inner_{owned_.get()} {}
  [[nodiscard]] std::uint32_t rank() const override { return inner_->rank(); }
  [[nodiscard]] std::uint32_t world() const override { return inner_->world(); }
  void start(const group_operation& what, group_done done) override {
    gpu_.adopt(what.in);
    gpu_.adopt(what.out);
    inner_->start(what, std::move(done));
  }
  [[nodiscard]] expected<std::unique_ptr<rank_group>> split(std::span<const std::uint32_t> ranks) override {
    auto made = inner_->split(ranks);
    if (!made || *made == nullptr) return made;
    return std::unique_ptr<rank_group>{std::make_unique<adopting_group>(gpu_, std::move(*made))};
  }

private:
  fake_gpu& gpu_;
  std::unique_ptr<rank_group> owned_;
  rank_group* inner_;
};

class adopting_communicator final : public communicator {
public:
  adopting_communicator(fake_gpu& gpu, std::unique_ptr<communicator> inner)
      : inner_{std::move(inner)}
      , group_{gpu, *inner_->group()} {}
  [[nodiscard]] std::span<float> contribution(std::size_t index) override {
    return inner_->contribution(index);
  }
  void all_reduce(all_reduce_done done) override { inner_->all_reduce(std::move(done)); }
  void abort() noexcept override { inner_->abort(); }
  [[nodiscard]] rank_group* group() override { return &group_; }

private:
  std::unique_ptr<communicator> inner_;
  adopting_group group_;
};

class fake_group_world final : public group_worlds::group_world {
public:
  explicit fake_group_world(std::uint64_t seed)
      : seed_{seed} {}
  [[nodiscard]] std::string name() const override { return "behavioural FAKE of NCCL"; }

  [[nodiscard]] std::vector<int> play(const collective_shape& shape,
                                      const group_worlds::part& played) override {
    fake_world world{seed_++};
    world.patient = true;
    const life_settings life{};
    std::vector<fake_rank*> ranks;
    for (std::uint32_t rank = 0; rank < shape.world; ++rank)
      ranks.push_back(&world.add(life));
    const auto place = nccl_collective{ranks[0]->gpu}.prepare(shape);
    if (!place) return {worlds::not_connected};
    std::vector<int> results;
    std::deque<group_worlds::player> players; // what calls name stays: the devices may still be copying
    {
      std::vector<std::unique_ptr<communicator>> members;
      for (auto* one : ranks) {
        as_owner(world, *one);
        auto made = nccl_collective{one->gpu, one->device}.connect(*place, shape, rank_id{one->number});
        if (!made) return {worlds::not_connected};
        if (one->number % 2 == 1)
          made = std::unique_ptr<communicator>{
              std::make_unique<adopting_communicator>(one->gpu, std::move(*made))};
        members.push_back(std::move(*made));
        players.emplace_back(*members.back(), one->number);
      }
      for (auto* one : ranks) {
        as_owner(world, *one);
        played.issue(players[one->number]);
      }
      const auto all_done = [&] {
        end_for_all(world, ranks);
        return std::ranges::all_of(players, [](const group_worlds::player& one) {
          return std::ranges::all_of(one.records(), [](const auto& each) { return each.dones > 0; });
        });
      };
      if (!world.run_until(all_done, moves_max)) return {worlds::deadline_passed};
      for (auto& one : players)
        results.push_back(played.check(one));
    }
    const auto rests = [&] {
      return std::ranges::all_of(ranks, [](const fake_rank* one) { return one->rests(); });
    };
    CHECK(world.run_until(rests, moves_max));
    CHECK(world.hub.violations == std::vector<std::string>{});
    return results;
  }

private:
  static constexpr std::uint64_t moves_max = 10'000'000;
  static void as_owner(fake_world& world, const fake_rank& one) {
    world.hub.thread = "owner " + std::to_string(one.number);
  }
  // The director: hears of a rank that is out, and ends the generation.
  static void end_for_all(fake_world& world, const std::vector<fake_rank*>& ranks) {
    const bool out = std::ranges::any_of(ranks, [](const fake_rank* one) {
      const auto state = one->device->state();
      return state != life_state::initialising && state != life_state::ready;
    });
    if (!out) return;
    for (auto* one : ranks) {
      world.hub.thread = "loop " + std::to_string(one->number);
      one->device->abort(generation_id{1}, "the generation was ended");
    }
  }

  std::uint64_t seed_; // of the next play
};

} // namespace troupe::fake
