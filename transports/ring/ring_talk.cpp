#include "transports/ring/ring_talk.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "transports/ring/limits.hpp"
#include "transports/ring/ring_groups.hpp"
#include "transports/ring/ring_member.hpp"

namespace troupe {
namespace {

struct show_body {
  call_signature call;
  std::uint32_t room;
  std::uint32_t unused;
};
static_assert(sizeof(show_body) == 32);

constexpr std::uint64_t pairwise_bit = std::uint64_t{1} << 63U;

} // namespace

ring_talk::ring_talk(ring_member& owner, std::uint32_t group, std::vector<std::uint32_t> members,
                     std::uint32_t rank, std::size_t part_bytes)
    : owner_{owner}
    , group_{group}
    , members_{std::move(members)}
    , rank_{rank}
    , part_bytes_{part_bytes}
    , outbox_{owner.memory().take(members_.size() * part_bytes / sizeof(float))}
    , inbox_{owner.memory().take(members_.size() * part_bytes / sizeof(float))}
    , peers_(members_.size()) {
  round_.out.resize(members_.size());
  round_.in.resize(members_.size());
}

std::optional<std::uint32_t> ring_talk::position_of(std::uint32_t member) const {
  const auto at = std::ranges::lower_bound(members_, member);
  if (at == members_.end() || *at != member) return std::nullopt;
  return static_cast<std::uint32_t>(at - members_.begin());
}

void ring_talk::run(std::function<void(expected<void>)> settled) {
  settled_ = std::move(settled);
  owner_.on_loop([self = shared_from_this()] { self->begin(); });
}

// --- a round --------------------------------------------------------------------------------------------

bool ring_talk::takes_part(std::uint32_t peer) const {
  return peer != rank_ && (!round_.pairwise || peer == round_.peer);
}

std::uint64_t ring_talk::turn_with(std::uint32_t peer, bool pairwise) const {
  return pairwise ? peers_[peer].pair_turns : turns_;
}

const ring_talk::shown_round* ring_talk::heard(std::uint32_t peer, bool pairwise, std::uint64_t turn) const {
  const auto& one = peers_[peer].heard[pairwise ? 1 : 0][turn % 2];
  return turn != 0 && one.turn == turn ? &one : nullptr;
}

void ring_talk::begin() {
  open_ = true;
  if (ended_) return settle(owner_.ended());
  ++(round_.pairwise ? peers_[round_.peer].pair_turns : turns_);
  awaited_ = unsent_ = 0;
  for (std::uint32_t peer = 0; peer < world(); ++peer) {
    if (!takes_part(peer)) continue;
    auto& state = peers_[peer];
    state.showed = state.sent = false;
    if (!round_.out[peer].empty()) ++unsent_;
    if (!round_.in[peer].empty()) {
      ++awaited_;
      state.room = owner_.groups().open_room(*this, peer);
    }
  }
  for (std::uint32_t i = 1; i < world(); ++i) { // not all to the same one first
    const auto peer = (rank_ + i) % world();
    if (takes_part(peer) && owner_.is_here(members_[peer])) show(peer);
  }
  consider();
}

void ring_talk::show(std::uint32_t peer) {
  auto& state = peers_[peer];
  state.showed = true;
  const show_body body{round_.shown, state.room, 0};
  owner_.send(members_[peer],
              {.what = ring_word::show,
               .index = group_,
               .arrived = turn_with(peer, round_.pairwise) | (round_.pairwise ? pairwise_bit : 0)},
              std::as_bytes(std::span{&body, 1}));
}

void ring_talk::on_here(std::uint32_t member) {
  const auto peer = position_of(member);
  if (open_ && peer && takes_part(*peer) && !peers_[*peer].showed) show(*peer);
}

void ring_talk::on_show(std::uint32_t member, const ring_frame& frame) {
  const auto peer = position_of(member);
  show_body body{};
  if (!peer || frame.values.size() != sizeof body) return owner_.count_malformed();
  std::memcpy(&body, frame.values.data(), sizeof body);
  const bool pairwise = (frame.arrived & pairwise_bit) != 0;
  const auto turn = frame.arrived & ~pairwise_bit;
  const auto now = turn_with(*peer, pairwise);
  if (turn == 0 || (turn != now && turn != now + 1)) return owner_.count_malformed(); // RT-1
  peers_[*peer].heard[pairwise ? 1 : 0][turn % 2] = {turn, body.room, body.call};
  consider();
}

bool ring_talk::all_heard() const {
  for (std::uint32_t peer = 0; peer < world(); ++peer)
    if (takes_part(peer) && heard(peer, round_.pairwise, turn_with(peer, round_.pairwise)) == nullptr)
      return false;
  return true;
}

std::optional<std::uint32_t> ring_talk::crossed() const {
  for (std::uint32_t peer = 0; peer < world(); ++peer) {
    if (peer == rank_ || (round_.pairwise && peer != round_.peer)) continue;
    const auto with = turn_with(peer, round_.pairwise);
    const auto other = turn_with(peer, !round_.pairwise) + 1;
    if (heard(peer, round_.pairwise, with) == nullptr && heard(peer, !round_.pairwise, other) != nullptr)
      return peer;
  }
  return std::nullopt;
}

expected<void> ring_talk::judge() {
  if (round_.pairwise)
    return check_partners({rank_, round_.shown},
                          {round_.peer, heard(round_.peer, true, turn_with(round_.peer, true))->call});
  std::vector<call_signature> all;
  for (std::uint32_t peer = 0; peer < world(); ++peer)
    all.push_back(peer == rank_ ? round_.shown : heard(peer, false, turns_)->call);
  return check_alike(all);
}

void ring_talk::consider() {
  if (!open_) return;
  if (round_.opens) {
    if (const auto peer = crossed()) {
      const auto theirs = heard(*peer, !round_.pairwise, turn_with(*peer, !round_.pairwise) + 1)->call;
      return misfit(check_partners({rank_, round_.shown}, {*peer, theirs}).failure(), peer);
    }
    if (!all_heard()) return;
    if (auto fits = judge(); !fits)
      return misfit(fits.failure(), round_.pairwise ? std::optional{round_.peer} : std::nullopt);
  }
  for (std::uint32_t i = 1; i < world(); ++i) {
    const auto peer = (rank_ + i) % world();
    if (takes_part(peer) && heard(peer, round_.pairwise, turn_with(peer, round_.pairwise)) != nullptr)
      send_block(peer);
    if (!open_) return; // a transfer that ended at once ended the round
  }
  if (awaited_ == 0 && unsent_ == 0 && all_heard()) settle({});
}

void ring_talk::send_block(std::uint32_t peer) {
  auto& state = peers_[peer];
  const auto block = round_.out[peer];
  if (block.empty() || std::exchange(state.sent, true)) return;
  const auto room = heard(peer, round_.pairwise, turn_with(peer, round_.pairwise))->room;
  if (block.size() <= limits::ring_message_bytes_max) {
    owner_.send(members_[peer], {.what = ring_word::block, .index = room}, block);
    --unsent_;
    return;
  }
  owner_.send_block(members_[peer], {.place = room, .group = true}, block,
                    [self = shared_from_this(), held = owner_.shared_from_this()](const auto& result) {
                      if (!result || self->ended_) return; // silence: the director ends the generation
                      --self->unsent_;
                      self->consider();
                    });
}

void ring_talk::settle(expected<void> result) {
  open_ = false;
  owner_.on_device([self = shared_from_this(), result = std::move(result)]() mutable {
    if (self->settled_) std::exchange(self->settled_, {})(std::move(result));
  });
}

// The group is of no more use. Of calls that all make, everyone judges for itself; of others, whoever is in
// neither of the two has to be told.
void ring_talk::misfit(const error& why, std::optional<std::uint32_t> partner) {
  ended_ = true;
  owner_.groups().close_rooms(*this);
  for (std::uint32_t peer = 0; partner && peer < world(); ++peer)
    if (peer != rank_ && peer != *partner && owner_.is_here(members_[peer]))
      owner_.send(members_[peer], {.what = ring_word::group_ended, .index = group_}, {});
  settle(why);
}

void ring_talk::on_ended() {
  if (std::exchange(ended_, true)) return;
  owner_.groups().close_rooms(*this);
  if (open_) settle(owner_.ended());
}

// --- blocks that come -----------------------------------------------------------------------------------

void ring_talk::on_block(std::uint32_t peer, std::span<const std::byte> bytes) {
  if (ended_ || bytes.size() != round_.in[peer].size()) return owner_.count_malformed();
  std::memcpy(round_.in[peer].data(), bytes.data(), bytes.size());
  block_came(peer);
}

std::span<std::byte> ring_talk::room_of(std::uint32_t peer, std::uint64_t bytes) {
  if (ended_ || bytes != round_.in[peer].size()) return {};
  return round_.in[peer];
}

void ring_talk::on_block_received(std::uint32_t peer) {
  if (!ended_) block_came(peer);
}

void ring_talk::block_came(std::uint32_t peer) {
  owner_.groups().close_room(peers_[peer].room);
  peers_[peer].room = 0;
  --awaited_;
  consider();
}

} // namespace troupe
