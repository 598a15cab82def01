#include "transports/ring/ring_group.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <new>
#include <numeric>
#include <utility>

#include "runtime/base/limits.hpp"
#include "transports/ring/limits.hpp"
#include "transports/ring/ring_member.hpp"

namespace troupe {
namespace {

constexpr std::size_t line_bytes = 64;

class ring_group final : public rank_group {
public:
  explicit ring_group(std::shared_ptr<ring_calls> calls)
      : calls_{std::move(calls)} {}
  ~ring_group() override { calls_->retire(); }
  ring_group(const ring_group&) = delete;
  ring_group& operator=(const ring_group&) = delete;

  [[nodiscard]] std::uint32_t rank() const override { return calls_->talk().rank(); }
  [[nodiscard]] std::uint32_t world() const override { return calls_->talk().world(); }
  void start(const group_operation& what, group_done done) override { calls_->start(what, std::move(done)); }
  [[nodiscard]] expected<std::unique_ptr<rank_group>> split(std::span<const std::uint32_t> ranks) override {
    return calls_->split(ranks);
  }

private:
  std::shared_ptr<ring_calls> calls_;
};

std::shared_ptr<ring_calls> make_calls(ring_member& owner, std::uint32_t number,
                                       std::vector<std::uint32_t> members, std::uint32_t rank, bool held) {
  const auto least = owner.shape().group_bytes / 2 / members.size();
  const auto part_bytes = std::max(line_bytes, least / line_bytes * line_bytes);
  auto talk = std::make_shared<ring_talk>(owner, number, std::move(members), rank, part_bytes);
  auto calls = std::make_shared<ring_calls>(owner, talk, held);
  owner.add_calls(calls);
  owner.on_loop([talk, &owner] { owner.groups().add(talk); });
  return calls;
}

void copy_bytes(std::byte* to, const std::byte* from, std::size_t bytes) {
  if (bytes > 0) std::memcpy(to, from, bytes);
}

} // namespace

std::unique_ptr<rank_group> make_ring_group(const std::shared_ptr<ring_member>& owner) {
  std::vector<std::uint32_t> all(owner->shape().world);
  std::iota(all.begin(), all.end(), 0U);
  return std::make_unique<ring_group>(make_calls(*owner, 0, std::move(all), owner->rank(), false));
}

// A group's number has a bit for each split that led to it: the splits of a group are numbered from its own
// highest bit on, so no two groups have the same set.
ring_calls::ring_calls(ring_member& owner, std::shared_ptr<ring_talk> talk, bool held)
    : owner_{owner}
    , talk_{std::move(talk)}
    , reduction_{talk_->world()}
    , inputs_(talk_->world())
    , last_split_{static_cast<std::uint32_t>(std::bit_width(talk_->group()))}
    , held_{held} {}

error ring_calls::ended() const {
  return {errc::aborted, "generation " + to_string(owner_.shape().generation) +
                             ", or its rank group after calls that did not fit, was ended"};
}

// --- the queue ------------------------------------------------------------------------------------------

void ring_calls::start(const group_operation& what, group_done done) {
  if (auto free = room(); !free) return done(std::move(free));
  auto fits = check_call(what, talk_->rank(), talk_->world());
  add({what, signature_of(what), std::move(done), std::move(fits)});
}

expected<std::unique_ptr<rank_group>> ring_calls::split(std::span<const std::uint32_t> ranks) {
  if (auto fits = check_split(ranks, talk_->world()); !fits) return fits.failure();
  if (over()) return ended();
  if (auto free = room(); !free) return free.failure();
  if (last_split_ + 1 == limits::rank_groups_max)
    return error{errc::no_credit, "more than " + std::to_string(limits::rank_groups_max) + " rank groups"};
  const auto number = talk_->group() | 1U << last_split_++;
  const auto own = std::ranges::find(ranks, talk_->rank());
  std::shared_ptr<ring_calls> part;
  if (own != ranks.end()) {
    std::vector<std::uint32_t> members;
    for (const auto rank : ranks)
      members.push_back(talk_->members()[rank]);
    try {
      part = make_calls(owner_, number, std::move(members), static_cast<std::uint32_t>(own - ranks.begin()),
                        true);
    } catch (const std::bad_alloc&) {
      return error{errc::out_of_memory, "ring: no memory for the boxes of a rank group"};
    }
  }
  add({{.call = group_call::barrier}, signature_of_split(ranks), [part](const expected<void>& agreed) {
         if (part == nullptr) return;
         agreed ? part->release() : part->close();
       }});
  if (part == nullptr) return std::unique_ptr<rank_group>{};
  return std::unique_ptr<rank_group>{std::make_unique<ring_group>(std::move(part))};
}

bool ring_calls::over() const {
  return closed_ || owner_.aborted();
}

expected<void> ring_calls::room() const {
  return over() ? expected<void>{} : check_room(calls_.size());
}

void ring_calls::add(call made) {
  calls_.push_back(std::move(made));
  advance();
}

void ring_calls::advance() {
  while (!calls_.empty()) {
    if (over()) {
      finish(ended());
    } else if (busy_ || held_) {
      return;
    } else if (!calls_.front().refused) {
      finish(calls_.front().refused);
    } else {
      busy_ = true;
      piece_ = {0, std::min(piece_elements(), what().elements)};
      run_round(true);
    }
  }
}

void ring_calls::finish(expected<void> result) {
  auto over = std::move(calls_.front());
  calls_.pop_front();
  over.done(std::move(result));
}

void ring_calls::release() {
  held_ = false;
  advance();
}

void ring_calls::close() {
  closed_ = true;
  talk_->forget();
  while (!calls_.empty())
    finish(ended());
}

void ring_calls::retire() {
  closed_ = true;
  talk_->forget();
  calls_.clear();
}

void ring_calls::run_round(bool opens) {
  auto& round = talk_->round();
  round.opens = opens;
  round.pairwise = is_pairwise(what().call);
  round.peer = what().peer;
  round.shown = calls_.front().shown;
  std::ranges::fill(round.out, std::span<const std::byte>{});
  std::ranges::fill(round.in, std::span<std::byte>{});
  reduced_ ? stage_reduced_slice() : stage();
  talk_->run([self = shared_from_this()](expected<void> result) { self->on_settled(std::move(result)); });
}

void ring_calls::on_settled(expected<void> result) {
  if (closed_) return;
  if (!result) {
    finish(result.failure().code == errc::aborted ? expected<void>{ended()} : std::move(result));
    return close();
  }
  if (std::exchange(reduced_, !reduced_ && in_slices()))
    take_slices();
  else
    take();
  if (!reduced_) piece_.begin += piece_.count;
  const auto left = what().elements - piece_.begin;
  if (reduced_ || (left > 0 && what().call != group_call::barrier)) {
    if (!reduced_) piece_.count = std::min(piece_elements(), left);
    return run_round(false);
  }
  busy_ = false;
  finish({});
  advance();
}

// --- pieces ---------------------------------------------------------------------------------------------

bool ring_calls::in_slices() const {
  const auto most = std::min(talk_->part_bytes(), limits::ring_group_exchange_bytes_max);
  return what().call == group_call::all_reduce && what().in.size() > most;
}

std::size_t ring_calls::piece_elements() const {
  const bool whole_box = in_slices() || is_pairwise(what().call) || what().call == group_call::broadcast;
  return talk_->part_bytes() * (whole_box ? talk_->world() : 1) / size_of(what().type);
}

// Of the piece, which of its elements that rank reduces.
ring_calls::span_of ring_calls::slice_of(std::uint32_t rank) const {
  const auto world = talk_->world();
  const auto each = piece_.count / world;
  const auto larger = piece_.count % world; // the first ones have one more
  return {rank * each + std::min<std::size_t>(rank, larger), each + (rank < larger ? 1 : 0)};
}

void ring_calls::send_to_others(std::span<const std::byte> block) {
  for (std::uint32_t rank = 0; rank < talk_->world(); ++rank)
    if (rank != talk_->rank()) talk_->round().out[rank] = block;
}

void ring_calls::expect_from_others(std::size_t bytes) {
  for (std::uint32_t rank = 0; rank < talk_->world(); ++rank)
    if (rank != talk_->rank()) talk_->round().in[rank] = {part(talk_->inbox(), rank), bytes};
}

void ring_calls::stage() {
  auto& round = talk_->round();
  const auto size = size_of(what().type);
  const auto bytes = piece_.count * size;
  auto* const box = talk_->outbox();
  const auto* const from = what().in.data() + piece_.begin * size;
  switch (what().call) {
  case group_call::all_reduce:
    copy_bytes(box, from, bytes);
    if (!in_slices()) {
      send_to_others({box, bytes});
      return expect_from_others(bytes);
    }
    for (std::uint32_t rank = 0; rank < talk_->world(); ++rank) {
      const auto slice = slice_of(rank);
      if (rank != talk_->rank()) round.out[rank] = {box + slice.begin * size, slice.count * size};
    }
    return expect_from_others(slice_of(talk_->rank()).count * size);
  case group_call::all_gather:
    copy_bytes(box, from, bytes);
    send_to_others({box, bytes});
    return expect_from_others(bytes);
  case group_call::reduce_scatter:
  case group_call::all_to_all:
    for (std::uint32_t rank = 0; rank < talk_->world(); ++rank) {
      copy_bytes(part(box, rank), from + rank * what().elements * size, bytes);
      if (rank != talk_->rank()) round.out[rank] = {part(box, rank), bytes};
    }
    return expect_from_others(bytes);
  case group_call::broadcast:
    if (what().peer != talk_->rank()) {
      round.in[what().peer] = {talk_->inbox(), bytes};
      return;
    }
    copy_bytes(box, from, bytes);
    return send_to_others({box, bytes});
  case group_call::send:
    copy_bytes(box, from, bytes);
    round.out[what().peer] = {box, bytes};
    return;
  case group_call::receive:
    round.in[what().peer] = {talk_->inbox(), bytes};
    return;
  case group_call::barrier:
    return;
  }
}

void ring_calls::take() {
  const auto size = size_of(what().type);
  const auto bytes = piece_.count * size;
  const auto own = talk_->rank();
  auto* const to = what().out.data() + piece_.begin * size;
  const auto stride = what().elements * size; // from one rank's part of `out` to the next
  const auto gather = [&](const std::byte* mine) {
    for (std::uint32_t rank = 0; rank < talk_->world(); ++rank)
      copy_bytes(to + rank * stride, rank == own ? mine : part(talk_->inbox(), rank), bytes);
  };
  switch (what().call) {
  case group_call::all_reduce: {
    const auto slice = slice_of(own);
    return in_slices() ? take_reduced(slice.begin * size, slice.count, talk_->outbox() + slice.begin * size)
                       : take_reduced(0, piece_.count, to);
  }
  case group_call::reduce_scatter:
    return take_reduced(own * talk_->part_bytes(), piece_.count, to);
  case group_call::all_gather:
    return gather(talk_->outbox());
  case group_call::all_to_all:
    return gather(part(talk_->outbox(), own));
  case group_call::broadcast:
    return copy_bytes(to, what().peer == own ? talk_->outbox() : talk_->inbox(), bytes);
  case group_call::receive:
    return copy_bytes(to, talk_->inbox(), bytes);
  case group_call::send:
  case group_call::barrier:
    return;
  }
}

// The own values stand in the outbox at `own_at`.
void ring_calls::take_reduced(std::size_t own_at, std::size_t count, std::byte* out) {
  for (std::uint32_t rank = 0; rank < talk_->world(); ++rank)
    inputs_[rank] = rank == talk_->rank() ? talk_->outbox() + own_at : part(talk_->inbox(), rank);
  reduction_.evaluate(what().type, what().op, inputs_, count, out);
}

void ring_calls::stage_reduced_slice() {
  const auto size = size_of(what().type);
  const auto slice = slice_of(talk_->rank());
  send_to_others({talk_->outbox() + slice.begin * size, slice.count * size});
  for (std::uint32_t rank = 0; rank < talk_->world(); ++rank)
    if (rank != talk_->rank())
      talk_->round().in[rank] = {part(talk_->inbox(), rank), slice_of(rank).count * size};
}

void ring_calls::take_slices() {
  const auto size = size_of(what().type);
  auto* const to = what().out.data() + piece_.begin * size;
  for (std::uint32_t rank = 0; rank < talk_->world(); ++rank) {
    const auto slice = slice_of(rank);
    const auto* from =
        rank == talk_->rank() ? talk_->outbox() + slice.begin * size : part(talk_->inbox(), rank);
    copy_bytes(to + slice.begin * size, from, slice.count * size);
  }
}

} // namespace troupe
