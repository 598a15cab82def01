#include "transports/nccl/nccl_group.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "runtime/base/limits.hpp"

namespace troupe {

nccl_group::~nccl_group() {
  member_->queue().post([member = member_, seat = seat_] { member->retire(*seat); });
}

void nccl_group::start(const group_operation& what, group_done done) {
  member_->start({.seat = seat_,
                  .what = what,
                  .shown = signature_of(what),
                  .done = std::move(done),
                  .refused = check_call(what, rank(), world())});
}

// Nothing blocks here: the group is there at once, and its calls have their turns after that of the split.
expected<std::unique_ptr<rank_group>> nccl_group::split(std::span<const std::uint32_t> ranks) {
  if (auto fits = check_split(ranks, world()); !fits) return fits.failure();
  if (const auto* ended = member_->ended()) return *ended;
  if (auto free = member_->room(*seat_); !free) return free.failure();
  if (seat_->next_split + 1 == limits::rank_groups_max)
    return error{errc::no_credit, "more than " + std::to_string(limits::rank_groups_max) + " rank groups"};
  auto part = std::make_shared<nccl_seat>();
  part->number = seat_->number | 1U << seat_->next_split++;
  part->next_split = seat_->next_split;
  for (const auto one : ranks)
    part->members.push_back(seat_->members[one]);
  member_->start({.seat = seat_, .shown = signature_of_split(ranks), .done = [](const expected<void>&) {}});
  const auto own = std::ranges::find(ranks, rank());
  if (own == ranks.end()) return std::unique_ptr<rank_group>{};
  part->rank = static_cast<std::uint32_t>(own - ranks.begin());
  return std::unique_ptr<rank_group>{std::make_unique<nccl_group>(member_, std::move(part))};
}

} // namespace troupe
