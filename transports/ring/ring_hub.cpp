#include "transports/ring/ring_hub.hpp"

#include <algorithm>

#include "transports/ring/limits.hpp"
#include "transports/ring/ring_member.hpp"

namespace troupe {

void ring_hub::attach(transport* network) {
  if (network_ != nullptr) network_->set_listener(nullptr);
  network_ = network;
  if (network_ != nullptr) network_->set_listener(this);
}

// The lower rank of a pair opens the path and speaks first, so that no two paths are opened at once.
void ring_hub::enter(const std::shared_ptr<ring_member>& who) {
  const auto& shape = who->shape();
  newest_ = shape.generation.value();
  members_.push_back({who});
  for (auto rank = who->rank() + 1; rank < shape.world && network_ != nullptr; ++rank) {
    const auto& peer = shape.members[rank];
    if (const auto path = network_->connect(peer.incarnation, peer.address); !path) {
      ++counters_.unsent;
      tell_unreachable(peer.incarnation, path.failure());
      continue;
    }
    who->say(rank, ring_word::here);
  }
  for (std::uint32_t rank = 0; rank < shape.world; ++rank) {
    const auto known = heard_.find(shape.members[rank].incarnation);
    if (known == heard_.end() || known->second.generation != newest_) continue;
    if (known->second.here) who->on_here(rank);
    if (known->second.ended) who->on_frame(rank, {.what = ring_word::ended});
  }
  std::erase_if(heard_, [&](const auto& each) { return each.second.generation <= newest_; });
}

void ring_hub::tell_unreachable(incarnation_id who, const error& cause) const {
  if (unreachable_) unreachable_(generation_id{newest_}, who, cause);
}

void ring_hub::on_path_lost(incarnation_id from, const error& cause) {
  const auto member = std::ranges::find_if(members_, [&](const entry& each) {
    return !each.left && each.member->shape().generation.value() == newest_;
  });
  if (member != members_.end() && member->member->rank_of(from)) tell_unreachable(from, cause);
}

void ring_hub::leave(const std::shared_ptr<ring_member>& who) {
  for (auto& each : members_)
    if (each.member == who) each.left = true;
  forget_left();
}

void ring_hub::forget_left() {
  std::erase_if(members_, [](const entry& each) { return each.left && !each.member->lends(); });
}

ring_hub::entry* ring_hub::find(std::uint64_t masked_generation) {
  const auto found = std::ranges::find_if(members_, [&](const entry& each) {
    return (each.member->shape().generation.value() & ring_transfer::generation_mask) == masked_generation;
  });
  return found == members_.end() ? nullptr : &*found;
}

void ring_hub::remember(incarnation_id from, const ring_frame& frame) {
  if (heard_.size() >= limits::ring_heard_max && !heard_.contains(from)) return;
  auto& known = heard_[from];
  if (known.generation > frame.generation) return;
  if (known.generation < frame.generation) known = {frame.generation};
  known.here = known.here || frame.what == ring_word::here;
  known.ended = known.ended || frame.what == ring_word::ended;
}

void ring_hub::on_message(incarnation_id from, std::span<const std::byte> payload) {
  const auto frame = decode_ring_frame(payload);
  if (!frame) {
    ++counters_.malformed;
    return;
  }
  if (frame->generation > newest_) return remember(from, *frame);
  auto* to = find(frame->generation & ring_transfer::generation_mask);
  const bool current =
      to != nullptr && !to->left && to->member->shape().generation.value() == frame->generation;
  const auto rank = current ? to->member->rank_of(from) : std::nullopt;
  if (!rank) {
    ++counters_.stale;
    return;
  }
  const auto held = to->member;
  held->on_frame(*rank, *frame);
}

std::span<std::byte> ring_hub::on_bulk_announced(incarnation_id from, const bulk_announcement& what) {
  const auto transfer = decode_ring_transfer(what.transfer);
  auto* to = transfer ? find(transfer->generation) : nullptr;
  const auto rank = to == nullptr || to->left ? std::nullopt : to->member->rank_of(from);
  if (!rank) {
    ++counters_.stale;
    return {};
  }
  return to->member->on_announced(*rank, *transfer, what.bytes);
}

void ring_hub::on_bulk_received(incarnation_id from, std::uint64_t number, expected<void> result) {
  const auto transfer = decode_ring_transfer(number);
  auto* to = transfer ? find(transfer->generation) : nullptr;
  const auto rank = to == nullptr ? std::nullopt : to->member->rank_of(from);
  if (!rank) return;
  const auto held = to->member;
  held->on_received(*rank, *transfer, result.has_value());
  forget_left();
}

} // namespace troupe
