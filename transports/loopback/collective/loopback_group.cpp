#include "transports/loopback/collective/loopback_group.hpp"

#include <algorithm>
#include <optional>
#include <utility>

namespace troupe {

class loopback_rank_group final : public rank_group {
public:
  loopback_rank_group(std::shared_ptr<loopback_groups> all, std::shared_ptr<group_table> table,
                      std::uint32_t rank, bool blocks)
      : all_{std::move(all)}
      , table_{std::move(table)}
      , rank_{rank}
      , blocks_{blocks} {}

  [[nodiscard]] std::uint32_t rank() const override { return rank_; }
  [[nodiscard]] std::uint32_t world() const override { return table_->world(); }
  void start(const group_operation& what, group_done done) override {
    std::unique_lock lock{all_->mutex_};
    if (auto room = table_->room(rank_); !room) {
      lock.unlock();
      return done(std::move(room));
    }
    if (!blocks_) return table_->start(rank_, what, std::move(done));
    std::optional<expected<void>> answer;
    table_->start(rank_, what, [&answer](expected<void> result) { answer = std::move(result); });
    all_->changed_.wait(lock, [&] { return answer.has_value(); });
    lock.unlock();
    done(std::move(*answer));
  }
  [[nodiscard]] expected<std::unique_ptr<rank_group>> split(std::span<const std::uint32_t> ranks) override {
    std::unique_lock lock{all_->mutex_};
    if (auto room = table_->room(rank_); !room) return room.failure();
    std::optional<expected<void>> answer;
    auto table = blocks_
                     ? table_->split(rank_, ranks, [&](expected<void> result) { answer = std::move(result); })
                     : table_->split(rank_, ranks, [](const expected<void>&) {});
    if (blocks_) all_->changed_.wait(lock, [&] { return answer.has_value(); });
    if (answer && !*answer) return answer->failure();
    if (!table) return table.failure();
    if (*table == nullptr) return std::unique_ptr<rank_group>{};
    const auto place = std::find(ranks.begin(), ranks.end(), rank_) - ranks.begin();
    return std::unique_ptr<rank_group>{std::make_unique<loopback_rank_group>(
        all_, std::move(*table), static_cast<std::uint32_t>(place), blocks_)};
  }

private:
  std::shared_ptr<loopback_groups> all_;
  std::shared_ptr<group_table> table_;
  std::uint32_t rank_;
  bool blocks_;
};

loopback_groups::loopback_groups(std::uint32_t world)
    : devices_(world)
    , first_{std::make_shared<group_table>(
          world, [this](std::uint32_t rank, group_outcome outcome) { deliver(rank, std::move(outcome)); })} {}

std::unique_ptr<rank_group> loopback_groups::join(std::uint32_t rank, executor* device) {
  const std::lock_guard lock{mutex_};
  devices_[rank] = device;
  return std::make_unique<loopback_rank_group>(shared_from_this(), first_, rank, device == nullptr);
}

void loopback_groups::abort() noexcept {
  const std::lock_guard lock{mutex_};
  first_->abort();
}

// Under the lock. A blocking member's `done` only notes the answer.
void loopback_groups::deliver(std::uint32_t rank, group_outcome outcome) {
  auto* device = devices_[rank];
  if (device == nullptr) {
    outcome.deliver();
    return changed_.notify_all();
  }
  device->post([travelling = std::make_unique<group_outcome>(std::move(outcome))] { travelling->deliver(); });
}

} // namespace troupe
