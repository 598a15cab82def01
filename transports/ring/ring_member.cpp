#include "transports/ring/ring_member.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "runtime/base/invariant.hpp"
#include "runtime/base/probe.hpp"
#include "transports/ring/limits.hpp"
#include "transports/ring/ring_group.hpp"
#include "transports/ring/ring_hub.hpp"
#include "transports/ring/ring_ways.hpp"

namespace troupe {
namespace {

constexpr std::size_t line_elements = 64 / sizeof(float);

} // namespace

ring_member::ring_member(std::shared_ptr<ring_hub> hub, const collective_shape& shape, rank_id rank)
    : hub_{std::move(hub)}
    , shape_{shape}
    , rank_{rank.value()}
    , stride_{(shape.elements + line_elements - 1) / line_elements * line_elements}
    , plan_{shape}
    , contributions_{hub_->memory().take(stride_ * plan_.slots_of(rank_))}
    , arrived_(shape.world)
    , parts_{shape.elements}
    , here_(shape.world) {
  for (std::uint32_t each = 0; each < shape.members.size(); ++each)
    ranks_.emplace(shape.members[each].incarnation, each);
}

std::shared_ptr<ring_member> ring_member::make(std::shared_ptr<ring_hub> hub, const collective_shape& shape,
                                               rank_id rank, ring_way way, const ring_pieces& pieces) {
  std::shared_ptr<ring_member> made{new ring_member{std::move(hub), shape, rank}};
  made->outgoing_.reserve(ring_header_bytes + limits::ring_message_bytes_max);
  made->way_ = make_ring_sum(way, *made, pieces);
  if (shape.group_bytes > 0) made->group_ = make_ring_group(made);
  return made;
}

executor& ring_member::loop() const {
  return hub_->loop();
}
executor& ring_member::device() const {
  return hub_->device();
}
executor& ring_member::lane() const {
  return hub_->lane();
}
ring_memory& ring_member::memory() {
  return hub_->memory();
}

// --- the communicator's side ----------------------------------------------------------------------------

std::span<float> ring_member::contribution(std::size_t index) {
  invariant(index < plan_.slots_of(rank_), "CP-2: a rank contributes one sum for each node it owns");
  return {contributions_.data() + index * stride_, shape_.elements};
}

std::span<const float> ring_member::own(std::uint32_t index) {
  return contribution(index);
}

// The peers hear of the sum with its first part.
void ring_member::begin(element_range part) {
  if (way_ == nullptr || !way_->in_parts() || aborted()) return;
  const bool first = !parts_.any();
  parts_.begin(part);
  if (first) arrived_[rank_].store(called_ + 1);
  on_loop([this, first, ready = parts_.begun()] {
    if (first) open_sum();
    way_->ready(ready);
  });
}

void ring_member::all_reduce(all_reduce_done done) {
  const bool opened = parts_.any();
  (void)parts_.take_rest();
  arrived_[rank_].store(++called_);
  if (aborted()) return done(ended());
  if (way_ == nullptr) return done(reduction{contribution(0), called_}); // alone
  done_ = std::move(done);
  loop().post([self = shared_from_this(), opened] {
    if (!opened) self->open_sum();
    if (self->aborted()) return;
    self->way_->ready({0, self->shape_.elements});
    self->way_->close();
  });
}

void ring_member::complete(std::span<const float> sum) {
  if (done_) std::exchange(done_, {})(reduction{sum, called_});
}

error ring_member::ended() const {
  return {errc::aborted, "generation " + to_string(shape_.generation) + " was ended"};
}

// Whoever waits here is free at once. What the transport holds comes back in its time (RM-4).
bool ring_member::end() {
  if (aborted_.exchange(true)) return false;
  device().post([self = shared_from_this()] {
    if (self->done_) std::exchange(self->done_, {})(self->ended());
    self->end_groups();
  });
  return true;
}

void ring_member::abort() noexcept {
  if (!end()) return;
  loop().post([self = shared_from_this()] {
    for (std::uint32_t rank = 0; rank < self->shape_.world; ++rank)
      self->say(rank, ring_word::ended);
  });
}

void ring_member::retire() {
  aborted_.store(true);
  done_ = {};
  group_.reset();
  loop().post([self = shared_from_this()] { self->hub_->leave(self); });
}

std::vector<std::uint64_t> ring_member::arrivals() const {
  std::vector<std::uint64_t> all;
  for (const auto& one : arrived_)
    all.push_back(one.load());
  return all;
}

// --- on the loop ----------------------------------------------------------------------------------------

void ring_member::open_sum() {
  ++begun_;
  if (aborted()) return;
  way_->begin(begun_);
  for (std::uint32_t i = 1; i < shape_.world; ++i) { // not all to the same one first
    const auto rank = (rank_ + i) % shape_.world;
    if (here_[rank]) way_->meet(rank);
  }
}

std::optional<std::uint32_t> ring_member::rank_of(incarnation_id who) const {
  const auto found = ranks_.find(who);
  if (found == ranks_.end() || found->second == rank_) return std::nullopt;
  return found->second;
}

void ring_member::on_here(std::uint32_t from) {
  if (here_[from]) return;
  here_[from] = true;
  if (aborted()) return say(from, ring_word::ended); // there may have been no path before
  if (from < rank_) say(from, ring_word::here);
  if (begun_ > 0) way_->meet(from);
  groups_.on_here(from);
}

void ring_member::on_group_frame(std::uint32_t from, const ring_frame& frame) {
  if (!aborted() && !groups_.on_frame(from, frame)) count_malformed();
}

void ring_member::on_frame(std::uint32_t from, const ring_frame& frame) {
  if (frame.what > ring_word::ended) return on_group_frame(from, frame);
  const bool further = frame.arrived > arrived_[from].load();
  if (further) arrived_[from].store(frame.arrived);
  if (frame.what == ring_word::ended) {
    probe<"ring.ended_by_peer">::hit();
    return void(end());
  }
  if (frame.what == ring_word::here) return on_here(from);
  const bool in_time = frame.arrived == begun_ || frame.arrived == begun_ + 1; // RM-2
  if (aborted() || !in_time) return;
  way_->on_part(from, frame);
  if (further) way_->on_arrival(from);
}

std::span<std::byte> ring_member::on_announced(std::uint32_t from, const ring_transfer& what,
                                               std::uint64_t bytes) {
  if (aborted()) return {};
  const auto place =
      what.group ? groups_.on_announced(from, what.place, bytes) : way_->on_announced(from, what, bytes);
  if (!place.empty()) ++lent_;
  return place;
}

void ring_member::on_received(std::uint32_t from, const ring_transfer& what, bool whole) {
  invariant(lent_ > 0, "RM-4: what the transport gives back was lent to it");
  --lent_;
  if (aborted()) return;
  if (what.group)
    groups_.on_received(from, what.place, whole);
  else
    way_->on_received(from, what, whole);
}

void ring_member::say(std::uint32_t to, ring_word what) {
  // Of an end, what was called for here and had not begun is worth knowing; what begins later is said then.
  const auto arrived = what == ring_word::ended ? arrived_[rank_].load() : begun_;
  if (to != rank_) send(to, {.what = what, .arrived = arrived}, {});
}

void ring_member::send_part(std::uint32_t to, std::uint32_t index, std::span<const float> values) {
  if (hub_->network() == nullptr) return;
  const auto bytes = format().bytes({0, values.size()});
  hub_->counters().value_bytes += bytes;
  format().pack(values, 0, frame_with({.what = ring_word::part, .index = index, .arrived = begun_}, bytes));
  send_frame(to);
}

void ring_member::send(std::uint32_t to, const ring_frame& frame, std::span<const std::byte> values) {
  if (hub_->network() == nullptr) return;
  std::ranges::copy(values, frame_with(frame, values.size()));
  send_frame(to);
}

// Room for the frame's values, in what leaves next.
std::byte* ring_member::frame_with(ring_frame frame, std::size_t bytes) {
  frame.generation = shape_.generation.value();
  outgoing_.resize(ring_header_bytes + bytes);
  encode_header(frame, outgoing_);
  return outgoing_.data() + ring_header_bytes;
}

void ring_member::send_frame(std::uint32_t to) {
  if (!hub_->network()->send_owed(shape_.members[to].incarnation, outgoing_)) ++hub_->counters().unsent;
}

void ring_member::send_piece(std::uint32_t to, ring_transfer what, std::span<const std::byte> packed,
                             bulk_done done) {
  hub_->counters().value_bytes += packed.size();
  send_block(to, what, packed, std::move(done));
}

// --- its groups' side -----------------------------------------------------------------------------------

void ring_member::add_calls(std::weak_ptr<ring_calls> made) {
  std::erase_if(calls_, [](const auto& each) { return each.expired(); });
  calls_.push_back(std::move(made));
}

void ring_member::end_groups() {
  for (const auto& each : std::vector{calls_})
    if (const auto calls = each.lock()) calls->close();
}

void ring_member::send_block(std::uint32_t to, ring_transfer what, std::span<const std::byte> block,
                             bulk_done done) {
  if (hub_->network() == nullptr) return done(error{errc::path_lost, "no network"});
  what.generation = shape_.generation.value();
  hub_->network()->send_bulk(shape_.members[to].incarnation, encode(what), block, std::move(done));
}

void ring_member::count_malformed() {
  ++hub_->counters().malformed;
}

} // namespace troupe
