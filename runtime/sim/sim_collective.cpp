#include "runtime/sim/sim_collective.hpp"

#include <vector>

#include "runtime/policy/canonical_sum.hpp"

namespace troupe {

class sim_communicator;

class sim_meeting {
public:
  sim_meeting(sim_world& world, const collective_shape& shape)
      : world_{world}
      , shape_{shape}
      , sum_{shape.shards, shape.world}
      , result_(shape.elements)
      , arrived_(shape.world) {
    for (std::uint32_t i = 0; i < sum_.slots(); ++i)
      slots_.emplace_back((shape.elements + 15) / 16 * 16 + 16);
  }

  [[nodiscard]] const collective_shape& shape() const { return shape_; }
  [[nodiscard]] std::span<float> slot(std::uint32_t rank, std::size_t index) {
    auto& memory = slots_[sum_.first_slot(rank) + index];
    auto address = reinterpret_cast<std::uintptr_t>(memory.data());
    const auto skip = ((address + 63) / 64 * 64 - address) / sizeof(float); // 64-byte aligned
    return {memory.data() + skip, shape_.elements};
  }

  struct waiter {
    sim_process* process{nullptr};
    std::int64_t pid{0};
    all_reduce_done done;
  };

  void arrive(std::uint32_t rank, waiter who) {
    if (aborted_) return complete(std::move(who), error{errc::aborted, "the generation ended"});
    arrived_[rank] = std::make_unique<waiter>(std::move(who));
    for (const auto& one : arrived_) {
      if (one == nullptr) return;
    }
    std::vector<const float*> contributions;
    for (std::uint32_t r = 0; r < shape_.world; ++r) {
      for (std::uint32_t i = 0; i < sum_.slots_of(r); ++i)
        contributions.push_back(slot(r, i).data());
    }
    sum_.evaluate(contributions, 0, shape_.elements, result_.data());
    for (auto& one : arrived_)
      complete(std::move(*one), std::span<const float>{result_});
    for (auto& one : arrived_)
      one.reset();
  }

  void abort() {
    aborted_ = true;
    for (auto& one : arrived_) {
      if (one != nullptr) complete(std::move(*one), error{errc::aborted, "the generation ended"});
      one.reset();
    }
  }

private:
  void complete(waiter who, expected<std::span<const float>> result) {
    if (world_.find(who.pid) != who.process) return; // died while it waited
    const auto delay = world_.draw_between(std::chrono::microseconds{5}, std::chrono::microseconds{60});
    auto held = std::make_shared<std::pair<all_reduce_done, expected<std::span<const float>>>>(
        std::move(who.done), std::move(result));
    world_.schedule(delay, who.process, [process = who.process, held] {
      process->device_queue.post([held] { held->first(held->second); });
    });
  }

  sim_world& world_;
  collective_shape shape_;
  canonical_sum sum_;
  std::vector<std::vector<float>> slots_;
  std::vector<float> result_;
  std::vector<std::unique_ptr<waiter>> arrived_;
  bool aborted_{false};
};

class sim_communicator final : public communicator {
public:
  sim_communicator(std::shared_ptr<sim_meeting> meeting, sim_process& owner, std::uint32_t rank)
      : meeting_{std::move(meeting)}
      , owner_{owner}
      , pid_{owner.pid()}
      , rank_{rank} {}
  [[nodiscard]] std::span<float> contribution(std::size_t index) override {
    return meeting_->slot(rank_, index);
  }
  void all_reduce(all_reduce_done done) override {
    meeting_->arrive(rank_, {&owner_, pid_, std::move(done)});
  }
  void abort() noexcept override { meeting_->abort(); }

private:
  std::shared_ptr<sim_meeting> meeting_;
  sim_process& owner_;
  std::int64_t pid_;
  std::uint32_t rank_;
};

class sim_collective final : public collective {
public:
  sim_collective(sim_collective_hub& hub, sim_process& owner)
      : hub_{hub}
      , owner_{owner} {}

  expected<std::string> prepare(const collective_shape& shape) override {
    auto name = "sim:" + std::to_string(hub_.next_++);
    hub_.meetings_[name] = std::make_shared<sim_meeting>(hub_.world_, shape);
    return name;
  }
  expected<std::unique_ptr<communicator>> connect(const std::string& descriptor,
                                                  const collective_shape& shape, rank_id rank) override {
    const auto found = hub_.meetings_.find(descriptor);
    if (found == hub_.meetings_.end())
      return error{errc::bad_argument, descriptor + ": no such meeting place"};
    const auto& there = found->second->shape();
    if (there.generation != shape.generation || there.world != shape.world || there.shards != shape.shards ||
        there.elements != shape.elements || rank.value() >= shape.world) {
      return error{errc::bad_argument, descriptor + ": the shape does not fit"};
    }
    return std::unique_ptr<communicator>{
        std::make_unique<sim_communicator>(found->second, owner_, rank.value())};
  }

private:
  sim_collective_hub& hub_;
  sim_process& owner_;
};

std::unique_ptr<collective> sim_collective_hub::make_collective(sim_process& owner) {
  return std::make_unique<sim_collective>(*this, owner);
}

} // namespace troupe
