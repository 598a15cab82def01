#include "transports/two_level/level_hub.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "runtime/base/probe.hpp"
#include "transports/two_level/level_member.hpp"
#include "transports/two_level/limits.hpp"

namespace troupe {
namespace {

// The first word of the level between's messages is a generation, which never gets there.
constexpr std::uint64_t mark = ~std::uint64_t{0x6c65766c}; // "levl"

struct header {
  std::uint64_t mark;
  std::uint64_t generation;
  std::uint64_t called;
  std::uint32_t rank;
  std::uint32_t what;
};

bool marked(std::span<const std::byte> payload) {
  std::uint64_t first = 0;
  if (payload.size() < sizeof first) return false;
  std::memcpy(&first, payload.data(), sizeof first);
  return first == mark;
}

} // namespace

std::optional<level_frame> decode_level_frame(std::span<const std::byte> payload) {
  header head{};
  if (payload.size() < sizeof head || payload.size() > sizeof head + limits::level_place_bytes_max)
    return std::nullopt;
  std::memcpy(&head, payload.data(), sizeof head);
  const bool known = head.what == static_cast<std::uint32_t>(level_word::here) ||
                     head.what == static_cast<std::uint32_t>(level_word::ended);
  if (head.mark != mark || !known) return std::nullopt;
  const auto text = payload.subspan(sizeof head);
  return level_frame{static_cast<level_word>(head.what),
                     head.generation,
                     head.called,
                     head.rank,
                     {reinterpret_cast<const char*>(text.data()), text.size()}};
}

std::vector<std::byte> encode(const level_frame& frame) {
  const header head{mark, frame.generation, frame.called, frame.rank, static_cast<std::uint32_t>(frame.what)};
  std::vector<std::byte> out(sizeof head + frame.place.size());
  std::memcpy(out.data(), &head, sizeof head);
  std::ranges::copy(std::as_bytes(std::span{frame.place}), out.begin() + sizeof head);
  return out;
}

transport* level_hub::attach(transport* network) {
  if (network_ != nullptr) network_->set_listener(nullptr);
  network_ = network;
  if (network_ == nullptr) return nullptr;
  network_->set_listener(this);
  return &share_;
}

void level_hub::close() {
  (void)attach(nullptr);
  newest_ = nullptr;
}

// --- members --------------------------------------------------------------------------------------------

void level_hub::enter(const std::shared_ptr<level_member>& who) {
  newest_ = who;
  left_ = false;
  entered_ = who->shape().generation.value();
  placed_ = false;
  for (const auto rank : who->neighbours()) {
    if (rank < who->rank() || network_ == nullptr) continue; // the lower rank of a pair opens the path
    const auto& peer = who->shape().members[rank];
    if (const auto path = network_->connect(peer.incarnation, peer.address); !path) {
      if (unreachable_) unreachable_(who->shape().generation, peer.incarnation, path.failure());
      continue;
    }
    say(*who, rank, level_word::here);
  }
  for (const auto rank : who->neighbours()) {
    const auto known = heard_.find(who->shape().members[rank].incarnation);
    if (known == heard_.end() || known->second.generation != entered_) continue;
    if (known->second.place) on_here(rank, *known->second.place);
    if (known->second.ended) on_ended(*known->second.ended);
  }
  std::erase_if(heard_, [&](const auto& each) { return each.second.generation <= entered_; });
}

void level_hub::leave(const std::shared_ptr<level_member>& who) {
  left_ = left_ || newest_ == who;
}

void level_hub::tell_end(const level_member& who) {
  if (newest_.get() != &who) return;
  for (const auto rank : who.neighbours())
    say(who, rank, level_word::ended);
}

void level_hub::say(const level_member& who, std::uint32_t rank, level_word what) {
  if (network_ == nullptr) return;
  const bool tells_place = what == level_word::here && rank - who.rank() < who.host().ranks;
  const auto cause = who.ended_by();
  const auto frame = encode(level_frame{what, who.shape().generation.value(), cause.called, cause.rank,
                                        tells_place ? std::string_view{who.place()} : std::string_view{}});
  (void)network_->send_owed(who.shape().members[rank].incarnation, frame);
}

std::optional<std::uint32_t> level_hub::neighbour(incarnation_id who) const {
  if (newest_ == nullptr) return std::nullopt;
  const auto& all = newest_->neighbours();
  const auto found = std::ranges::find(
      all, who, [&](std::uint32_t rank) { return newest_->shape().members[rank].incarnation; });
  return found == all.end() ? std::nullopt : std::optional{*found};
}

// --- what comes in --------------------------------------------------------------------------------------

void level_hub::on_message(incarnation_id from, std::span<const std::byte> payload) {
  if (!marked(payload)) {
    if (between_ != nullptr) between_->on_message(from, payload);
    return;
  }
  if (const auto frame = decode_level_frame(payload)) hear(from, *frame);
}

void level_hub::hear(incarnation_id from, const level_frame& frame) {
  if (frame.generation > entered_) return remember(from, frame);
  const auto rank = frame.generation == entered_ ? neighbour(from) : std::nullopt;
  if (!rank) return; // LH-1
  if (frame.what == level_word::here) return on_here(*rank, frame.place);
  probe<"level_hub.ended_by_peer">::hit();
  on_ended(frame);
}

void level_hub::on_ended(const level_frame& frame) {
  if (frame.rank < newest_->shape().world) newest_->end({frame.rank, frame.called});
}

void level_hub::remember(incarnation_id from, const level_frame& frame) {
  if (heard_.size() >= limits::level_heard_max && !heard_.contains(from)) return;
  auto& known = heard_[from];
  if (known.generation > frame.generation) return;
  if (known.generation < frame.generation) known = {frame.generation, {}, {}};
  if (frame.what == level_word::here) known.place = std::string{frame.place};
  if (frame.what == level_word::ended)
    known.ended = level_frame{frame.what, frame.generation, frame.called, frame.rank, {}};
}

void level_hub::on_here(std::uint32_t rank, std::string_view place) {
  if (newest_->ended()) return say(*newest_, rank, level_word::ended); // there may have been no path before
  if (newest_->leads() || std::exchange(placed_, true)) return;
  device_.post([this, member = newest_, where = std::make_shared<std::string>(place)] {
    if (member->ended()) return;
    const auto shape = member->plan().inside(member->shape(), member->host_index());
    const rank_id own{member->rank() - member->host().first};
    member->take_inside(inside_.connect(*where, shape, own));
  });
}

std::span<std::byte> level_hub::on_bulk_announced(incarnation_id from, const bulk_announcement& what) {
  return between_ == nullptr ? std::span<std::byte>{} : between_->on_bulk_announced(from, what);
}

void level_hub::on_bulk_received(incarnation_id from, std::uint64_t transfer, expected<void> result) {
  if (between_ != nullptr) between_->on_bulk_received(from, transfer, std::move(result));
}

void level_hub::on_path_lost(incarnation_id from, const error& cause) {
  if (between_ != nullptr) between_->on_path_lost(from, cause);
  const auto rank = left_ ? std::nullopt : neighbour(from);
  const bool own_host = rank && newest_->plan().host_of(*rank) == newest_->host_index();
  if (own_host && unreachable_) unreachable_(newest_->shape().generation, from, cause);
}

void level_hub::on_path_interrupted(incarnation_id from, const error& cause) {
  if (between_ != nullptr) between_->on_path_interrupted(from, cause);
}

void level_hub::on_undelivered(incarnation_id to, std::span<const std::byte> payload, const error& cause) {
  if (between_ != nullptr && !marked(payload)) between_->on_undelivered(to, payload, cause);
}

} // namespace troupe
