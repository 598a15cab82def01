#include "transports/nccl/nccl_call.hpp"

#include <algorithm>
#include <string>

#include "runtime/policy/line_slice.hpp"
#include "transports/nccl/limits.hpp"

namespace troupe {

nccl_call::progress nccl_call::begin(nccl::comm on, const nccl_seat& seat, const group_operation& what,
                                     const call_signature& shown) {
  on_ = on;
  seat_ = &seat;
  what_ = what;
  shown_ = {.call = shown, .group = seat.number};
  marked_ = false;
  piece_ = {};
  broken_.reset();
  result_ = {};
  copy(boxes_.shown(), reinterpret_cast<const std::byte*>(&shown_), sizeof shown_);
  return show(stage::showing);
}

nccl_call::progress nccl_call::look() {
  if (marked_) return reached();
  const auto answer = calls_.status(on_);
  if (answer.under_way()) return progress::under_way;
  return answer.failed() ? broke({errc::aborted, answer.why}) : handed_over();
}

// --- steps ----------------------------------------------------------------------------------------------

nccl_call::progress nccl_call::show(stage as) {
  stage_ = as;
  parts_.clear();
  each_peer([this](std::uint32_t peer) {
    send(peer, boxes_.shown(), sizeof shown_);
    receive(peer, boxes_.shown_by(peer), sizeof shown_);
  });
  return issue();
}

nccl_call::progress nccl_call::issue() {
  if (broken_) return progress::broken;
  if (parts_.empty()) return handed_over();
  const auto answer = calls_.exchange(on_, parts_);
  return answer.failed() ? broke({errc::aborted, answer.why}) : progress::under_way;
}

// What was issued is on the stream: what follows it may be issued, too.
nccl_call::progress nccl_call::handed_over() {
  return stage_ == stage::moving && reduces(what_.call) ? reduce() : mark();
}

nccl_call::progress nccl_call::reduce() {
  const auto own = in_slices() ? slice_of(seat_->rank) : span_of{0, piece_.count};
  auto* const result = boxes_.outbox() + own.begin * size_of(what_.type);
  if (own.count > 0)
    if (auto reduced = calls_.reduce({.inputs = boxes_.inbox(),
                                      .stride = part_bytes(),
                                      .world = seat_->world(),
                                      .type = what_.type,
                                      .op = what_.op,
                                      .result = result,
                                      .elements = own.count});
        !reduced)
      return broke(reduced.failure());
  if (!in_slices()) return mark();
  stage_ = stage::gathering;
  stage_slices();
  return issue();
}

nccl_call::progress nccl_call::mark() {
  if (broken_) return progress::broken;
  if (auto marked = calls_.mark(); !marked) return broke(marked.failure());
  marked_ = true;
  return progress::under_way;
}

nccl_call::progress nccl_call::reached() {
  const auto there = calls_.reached();
  if (!there) return broke(there.failure());
  if (!*there) return progress::under_way;
  marked_ = false;
  switch (stage_) {
  case stage::showing:
    return judge();
  case stage::moving:
  case stage::gathering:
    return take_piece();
  default:
    return progress::over;
  }
}

nccl_call::progress nccl_call::judge() {
  seen_.resize(seat_->world());
  copy(reinterpret_cast<std::byte*>(seen_.data()), boxes_.shown_by(0), seen_.size() * sizeof(nccl_shown));
  if (broken_) return progress::broken;
  seen_[seat_->rank] = shown_;
  result_ = compare(seen_);
  if (!result_) return show(stage::parting);
  return moves_anything() ? move_piece() : progress::over;
}

expected<void> nccl_call::compare(std::span<const nccl_shown> seen) const {
  expected<void> fits;
  std::vector<call_signature> all;
  for (const auto& one : seen)
    all.push_back(one.call);
  each_peer([&](std::uint32_t peer) {
    if (!fits || seen[peer].group == seat_->number) return;
    fits = error{errc::bad_argument, "rank group: rank " + std::to_string(peer) + " calls " +
                                         to_string(all[peer]) + " in another group, rank " +
                                         std::to_string(seat_->rank) + " calls " + to_string(shown_.call)};
  });
  if (!fits) return fits;
  return is_pairwise(what_.call) ? check_partners({seat_->rank, shown_.call}, {what_.peer, all[what_.peer]})
                                 : check_alike(all);
}

nccl_call::progress nccl_call::move_piece() {
  stage_ = stage::moving;
  piece_.count = std::min(piece_elements(), what_.elements - piece_.begin);
  parts_.clear();
  stage_piece();
  return issue();
}

nccl_call::progress nccl_call::take_piece() {
  take();
  piece_.begin += piece_.count;
  if (piece_.begin < what_.elements) return move_piece();
  stage_ = stage::taking;
  return mark();
}

nccl_call::progress nccl_call::broke(const error& why) {
  if (!broken_) broken_ = why;
  return progress::broken;
}

// --- a piece --------------------------------------------------------------------------------------------

// From `in` to the boxes, and which parts go where. The own part stands where others' parts come to.
void nccl_call::stage_piece() {
  const auto size = size_of(what_.type);
  const auto bytes = piece_.count * size;
  const auto own = seat_->rank;
  auto* const box = boxes_.outbox();
  const auto* const from = what_.in.data() + piece_.begin * size;
  switch (what_.call) {
  case group_call::all_reduce: {
    copy(box, from, bytes);
    const auto cut = [&](std::uint32_t rank) {
      return in_slices() ? slice_of(rank) : span_of{0, piece_.count};
    };
    const auto mine = cut(own);
    copy(in_part(own), box + mine.begin * size, mine.count * size);
    return each_peer([&](std::uint32_t peer) {
      send(peer, box + cut(peer).begin * size, cut(peer).count * size);
      receive(peer, in_part(peer), mine.count * size);
    });
  }
  case group_call::reduce_scatter:
  case group_call::all_to_all:
    copy(in_part(own), from + own * what_.elements * size, bytes);
    return each_peer([&](std::uint32_t peer) {
      copy(out_part(peer), from + peer * what_.elements * size, bytes);
      send(peer, out_part(peer), bytes);
      receive(peer, in_part(peer), bytes);
    });
  case group_call::all_gather:
    copy(in_part(own), from, bytes);
    return each_peer([&](std::uint32_t peer) {
      send(peer, in_part(own), bytes);
      receive(peer, in_part(peer), bytes);
    });
  case group_call::broadcast:
    if (own != what_.peer) return receive(what_.peer, box, bytes);
    copy(box, from, bytes);
    return each_peer([&](std::uint32_t peer) { send(peer, box, bytes); });
  case group_call::send:
    copy(box, from, bytes);
    return send(what_.peer, box, bytes);
  case group_call::receive:
    return receive(what_.peer, box, bytes);
  case group_call::barrier:
    return;
  }
}

// The own slice, reduced, to all; theirs beside it.
void nccl_call::stage_slices() {
  const auto size = size_of(what_.type);
  const auto own = slice_of(seat_->rank);
  auto* const box = boxes_.outbox();
  parts_.clear();
  each_peer([&](std::uint32_t peer) {
    const auto theirs = slice_of(peer);
    send(peer, box + own.begin * size, own.count * size);
    receive(peer, box + theirs.begin * size, theirs.count * size);
  });
}

void nccl_call::take() {
  const auto size = size_of(what_.type);
  const auto bytes = piece_.count * size;
  auto* const to = what_.out.data() + piece_.begin * size;
  switch (what_.call) {
  case group_call::all_reduce:
  case group_call::reduce_scatter:
  case group_call::broadcast:
  case group_call::receive:
    return copy(to, boxes_.outbox(), bytes);
  case group_call::all_gather:
  case group_call::all_to_all:
    for (std::uint32_t rank = 0; rank < seat_->world(); ++rank)
      copy(to + rank * what_.elements * size, in_part(rank), bytes);
    return;
  case group_call::send:
  case group_call::barrier:
    return;
  }
}

void nccl_call::send(std::uint32_t rank, const std::byte* from, std::size_t bytes) {
  if (bytes > 0) parts_.push_back({.peer = seat_->members[rank], .from = from, .bytes = bytes});
}

void nccl_call::receive(std::uint32_t rank, std::byte* to, std::size_t bytes) {
  if (bytes > 0) parts_.push_back({.peer = seat_->members[rank], .to = to, .bytes = bytes});
}

void nccl_call::copy(std::byte* to, const std::byte* from, std::size_t bytes) {
  if (bytes == 0 || broken_) return;
  if (auto copied = calls_.copy(to, from, bytes); !copied) broken_ = copied.failure();
}

// --- what the call is -----------------------------------------------------------------------------------

template <class Each>
void nccl_call::each_peer(Each each) const {
  if (is_pairwise(what_.call)) return each(what_.peer);
  for (std::uint32_t rank = 0; rank < seat_->world(); ++rank)
    if (rank != seat_->rank) each(rank);
}

bool nccl_call::moves_anything() const {
  return what_.call != group_call::barrier && what_.elements > 0;
}

// Large enough that a second exchange costs less than everybody's reducing everything.
bool nccl_call::in_slices() const {
  return what_.call == group_call::all_reduce &&
         what_.in.size() > std::min(part_bytes(), limits::nccl_group_exchange_bytes_max);
}

std::size_t nccl_call::piece_elements() const {
  const bool whole_box = in_slices() || is_pairwise(what_.call) || what_.call == group_call::broadcast;
  return part_bytes() * (whole_box ? seat_->world() : 1) / size_of(what_.type);
}

// Of the piece, what `rank` reduces; cut at lines.
nccl_call::span_of nccl_call::slice_of(std::uint32_t rank) const {
  const auto slice = line_slice(piece_.count, size_of(what_.type), seat_->world(), rank);
  return {slice.begin, slice.size()};
}

} // namespace troupe
