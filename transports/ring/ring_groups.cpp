#include "transports/ring/ring_groups.hpp"

#include <utility>

#include "transports/ring/ring_talk.hpp"

namespace troupe {

void ring_groups::add(std::shared_ptr<ring_talk> talk) {
  const auto number = talk->group();
  talks_.emplace(number, std::move(talk));
}

std::uint32_t ring_groups::open_room(ring_talk& talk, std::uint32_t peer) {
  do
    last_room_ = (last_room_ + 1) & ring_transfer::place_mask;
  while (last_room_ == 0 || rooms_.contains(last_room_));
  rooms_[last_room_] = {talk.shared_from_this(), peer};
  return last_room_;
}

void ring_groups::close_rooms(const ring_talk& talk) {
  std::erase_if(rooms_,
                [&](const auto& each) { return each.second.talk.get() == &talk && !each.second.lent; });
}

ring_groups::room* ring_groups::find(std::uint32_t from, std::uint32_t number) {
  const auto found = rooms_.find(number);
  const bool right = found != rooms_.end() && found->second.talk->members()[found->second.peer] == from;
  return right ? &found->second : nullptr;
}

void ring_groups::on_here(std::uint32_t from) {
  for (const auto& [number, talk] : talks_)
    talk->on_here(from);
}

bool ring_groups::on_frame(std::uint32_t from, const ring_frame& frame) {
  if (frame.what == ring_word::block) {
    const auto* to = find(from, frame.index);
    if (to == nullptr || to->lent) return false;
    const auto talk = to->talk; // the room ends with its block
    talk->on_block(to->peer, frame.values);
    return true;
  }
  const auto found = talks_.find(frame.index);
  if (found == talks_.end()) return false;
  if (frame.what == ring_word::show)
    found->second->on_show(from, frame);
  else
    found->second->on_ended();
  return true;
}

std::span<std::byte> ring_groups::on_announced(std::uint32_t from, std::uint32_t number,
                                               std::uint64_t bytes) {
  auto* to = find(from, number);
  if (to == nullptr || to->lent) return {};
  const auto place = to->talk->room_of(to->peer, bytes);
  to->lent = !place.empty();
  return place;
}

void ring_groups::on_received(std::uint32_t from, std::uint32_t number, bool whole) {
  auto* to = find(from, number);
  if (to == nullptr) return;
  to->lent = false;
  const auto talk = to->talk;
  if (whole) talk->on_block_received(to->peer);
  if (talk->ended()) rooms_.erase(number);
}

} // namespace troupe
