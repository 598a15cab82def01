#include "runtime/sim/sim_group.hpp"

#include <algorithm>
#include <utility>

#include "runtime/sim/sim_collective.hpp"

namespace troupe {
namespace {

constexpr auto delay_min = std::chrono::microseconds{5};
constexpr auto delay_max = std::chrono::microseconds{400};

error ended() {
  return {errc::aborted, "the generation ended"};
}

class sim_rank_group final : public rank_group {
public:
  sim_rank_group(std::shared_ptr<sim_groups> all, std::shared_ptr<group_table> table, sim_process& owner,
                 std::uint32_t rank)
      : all_{std::move(all)}
      , table_{std::move(table)}
      , owner_{owner}
      , rank_{rank} {}

  [[nodiscard]] std::uint32_t rank() const override { return rank_; }
  [[nodiscard]] std::uint32_t world() const override { return table_->world(); }
  void start(const group_operation& what, group_done done) override {
    if (!owner_.alive()) return; // SW-3
    if (auto room = table_->room(rank_); !room) return done(std::move(room));
    table_->start(rank_, what, std::move(done));
  }
  [[nodiscard]] expected<std::unique_ptr<rank_group>> split(std::span<const std::uint32_t> ranks) override {
    if (!owner_.alive()) return ended();
    if (auto room = table_->room(rank_); !room) return room.failure();
    auto table = table_->split(rank_, ranks, [](const expected<void>&) {});
    if (!table) return table.failure();
    if (*table == nullptr) return std::unique_ptr<rank_group>{};
    const auto place = std::find(ranks.begin(), ranks.end(), rank_) - ranks.begin();
    return std::unique_ptr<rank_group>{
        std::make_unique<sim_rank_group>(all_, std::move(*table), owner_, static_cast<std::uint32_t>(place))};
  }

private:
  std::shared_ptr<sim_groups> all_; // the table's sink is there
  std::shared_ptr<group_table> table_;
  sim_process& owner_;
  std::uint32_t rank_;
};

} // namespace

sim_groups::sim_groups(sim_collective_hub& hub, std::uint32_t world)
    : hub_{hub}
    , members_(world)
    , first_{std::make_shared<group_table>(
          world, [this](std::uint32_t rank, group_outcome outcome) { deliver(rank, std::move(outcome)); })} {}

std::unique_ptr<rank_group> sim_groups::join(std::uint32_t rank, sim_process& owner) {
  members_[rank].process = &owner;
  return std::make_unique<sim_rank_group>(shared_from_this(), first_, owner, rank);
}

void sim_groups::abort() {
  if (std::exchange(aborted_, true)) return;
  for (auto& one : members_)
    for (auto i = one.leaving.size() - one.held; i < one.leaving.size(); ++i)
      one.leaving[i] = {std::move(one.leaving[i].done), ended(), {}, nullptr};
  first_->abort();
  for (std::uint32_t rank = 0; rank < members_.size(); ++rank)
    release(rank, hub_.world_.now());
}

void sim_groups::deliver(std::uint32_t rank, group_outcome outcome) {
  auto& one = members_[rank];
  if (!one.process->alive()) return; // died while it waited
  one.leaving.push_back(std::move(outcome));
  ++one.held;
  release(rank, hub_.world_.now());
}

// Every release has a turn of its own, and takes what is first then: order does not depend on the delays.
void sim_groups::release(std::uint32_t rank, time_point begun) {
  auto& one = members_[rank];
  const auto wait = reunion(begun) - hub_.world_.now();
  if (!aborted_ && wait > duration{0}) {
    hub_.world_.after(wait, [self = shared_from_this(), rank, begun] { self->release(rank, begun); });
    return;
  }
  for (; one.held > 0; --one.held)
    hub_.world_.schedule(hub_.world_.draw_between(delay_min, delay_max), &one.process->device_queue,
                         [self = shared_from_this(), rank] { self->hand_over(rank); });
}

void sim_groups::hand_over(std::uint32_t rank) {
  auto& leaving = members_[rank].leaving;
  auto outcome = std::move(leaving.front());
  leaving.pop_front();
  if (outcome.result && aborted_ && hub_.aborts_split_ && hub_.world_.draw(2) == 0)
    return outcome.done(ended());
  outcome.deliver();
}

time_point sim_groups::reunion(time_point begun) const {
  std::vector<sim_host_id> hosts;
  for (const auto& one : members_)
    if (one.process != nullptr) hosts.push_back(one.process->host());
  return hub_.world_.hosts().reunion(hosts, begun, hub_.world_.now());
}

} // namespace troupe
