#include "transports/shm/shm_group.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "runtime/base/limits.hpp"
#include "runtime/policy/line_slice.hpp"
#include "transports/shm/limits.hpp"

namespace troupe {

namespace {

constexpr std::size_t line_bytes = 64;

// `from` may be the very memory of `to`, or empty.
void move_bytes(std::byte* to, const std::byte* from, std::size_t bytes) {
  if (bytes > 0 && to != from) std::memcpy(to, from, bytes);
}

// Large enough that reducing a slice, and a second meeting, costs less than everybody's reducing everything.
bool in_slices(const group_operation& what) {
  return what.call == group_call::all_reduce && what.in.size() > limits::shm_exchange_bytes_max;
}

} // namespace

shm_group::shm_group(std::shared_ptr<segment> memory, const group_seat& seat)
    : memory_{std::move(memory)}
    , seat_{seat}
    , meeting_{words().together, arrivals(), seat.rank, seat.tuning}
    , reduction_{seat.world}
    , shown_(seat.world)
    , inputs_(seat.world)
    , pairs_(seat.world) {}

expected<std::unique_ptr<rank_group>> shm_group::make(std::shared_ptr<segment> memory,
                                                      const group_seat& seat) {
  std::unique_ptr<shm_group> member{new shm_group{std::move(memory), seat}};
  if (auto touched = member->touch(); !touched) return touched.failure();
  return std::unique_ptr<rank_group>{std::move(member)};
}

// Own memory first: members that come together then allocate disjoint pages.
expected<void> shm_group::touch() const {
  const auto& layout = memory_->layout();
  const auto staging_bytes = 2 * layout.half_bytes;
  const auto own_at = area_at() + layout.staging_at + seat_.rank * staging_bytes;
  if (auto touched = memory_->touch(own_at, staging_bytes); !touched) return touched;
  if (auto touched = memory_->touch(0, layout.slots_at); !touched) return touched;
  return memory_->touch(area_at(), layout.staging_at + seat_.world * staging_bytes);
}

expected<void> shm_group::run(const group_operation& what) {
  if (auto fits = check_call(what, seat_.rank, seat_.world); !fits) return fits;
  return is_pairwise(what.call) ? run_pair(what) : run_together(what);
}

// --- calls of all members -------------------------------------------------------------------------------

expected<void> shm_group::run_together(const group_operation& what) {
  const auto most = piece_elements(what);
  const auto elements = what.call == group_call::barrier ? 0 : what.elements;
  for (std::size_t begin = 0; begin == 0 || begin < elements; begin += most, ++turns_) {
    const piece part{begin, std::min(most, elements - begin)};
    stage(what, part);
    const auto met = begin == 0 ? show({signature_of(what), 0}) : meet();
    if (!met) return met;
    if (!in_slices(what))
      take(what, part);
    else if (auto reduced = all_reduce_slices(what, part); !reduced)
      return reduced;
  }
  return {};
}

// Meets, and compares what everybody calls.
expected<void> shm_group::show(const common_call& mine) {
  if (meeting_.aborted()) return ended(); // others may still read what was shown in the call that failed
  const auto turn = calls_++ % 2;
  line(seat_.rank).common[turn] = mine;
  if (auto met = meet(); !met) return met;
  for (std::uint32_t rank = 0; rank < seat_.world; ++rank)
    shown_[rank] = line(rank).common[turn].shown;
  if (auto alike = check_alike(shown_); !alike) return misfit(alike.failure());
  return {};
}

expected<void> shm_group::meet() {
  switch (meeting_.meet()) {
  case meeting::outcome::complete:
    return {};
  case meeting::outcome::aborted:
    break;
  case meeting::outcome::corrupt:
    abort_group(words());
    return error{errc::internal,
                 "the shared segment of generation " + to_string(seat_.generation) + " was overwritten"};
  }
  return ended();
}

std::size_t shm_group::piece_elements(const group_operation& what) const {
  const bool part_a_rank = what.call == group_call::reduce_scatter || what.call == group_call::all_to_all;
  return (part_a_rank ? part_bytes(seat_.world) : memory_->layout().half_bytes) / size_of(what.type);
}

void shm_group::stage(const group_operation& what, piece part) {
  const auto size = size_of(what.type);
  const auto parts = parts_of(what, seat_.rank, seat_.world).in;
  for (std::size_t i = 0; i < parts; ++i)
    move_bytes(half(seat_.rank) + i * part_bytes(seat_.world),
               what.in.data() + (i * what.elements + part.begin) * size, part.count * size);
}

void shm_group::take(const group_operation& what, piece part) {
  const auto size = size_of(what.type);
  const auto bytes = part.count * size;
  auto* out = what.out.data() + part.begin * size;
  const auto take_all = [&](std::size_t staged_at) {
    for (std::uint32_t rank = 0; rank < seat_.world; ++rank)
      move_bytes(out + rank * what.elements * size, half(rank) + staged_at, bytes);
  };
  switch (what.call) {
  case group_call::all_reduce:
    return take_reduced(what, part, 0, out);
  case group_call::reduce_scatter:
    return take_reduced(what, part, seat_.rank * part_bytes(seat_.world), out);
  case group_call::all_gather:
    return take_all(0);
  case group_call::all_to_all:
    return take_all(seat_.rank * part_bytes(seat_.world));
  case group_call::broadcast:
    return move_bytes(out, half(what.peer), bytes);
  case group_call::send:
  case group_call::receive:
  case group_call::barrier:
    return;
  }
}

void shm_group::take_reduced(const group_operation& what, piece part, std::size_t staged_at, std::byte* out) {
  for (std::uint32_t rank = 0; rank < seat_.world; ++rank)
    inputs_[rank] = half(rank) + staged_at;
  reduction_.evaluate(what.type, what.op, inputs_, part.count, out);
}

// Reduces the own slice of the piece to where it lies in the own staging: nobody else reads it there.
expected<void> shm_group::all_reduce_slices(const group_operation& what, piece part) {
  const auto size = size_of(what.type);
  const auto own = slice_of(what, part.count, seat_.rank);
  take_reduced(what, own, own.begin * size, half(seat_.rank) + own.begin * size);
  if (auto met = meet(); !met) return met;
  for (std::uint32_t rank = 0; rank < seat_.world; ++rank) {
    const auto slice = slice_of(what, part.count, rank);
    move_bytes(what.out.data() + (part.begin + slice.begin) * size, half(rank) + slice.begin * size,
               slice.count * size);
  }
  return {};
}

// The slice of `count` elements that `rank` reduces; cut at cache lines.
shm_group::piece shm_group::slice_of(const group_operation& what, std::size_t count,
                                     std::uint32_t rank) const {
  const auto slice = line_slice(count, size_of(what.type), seat_.world, rank);
  return {slice.begin, slice.size()};
}

expected<std::unique_ptr<rank_group>> shm_group::split(std::span<const std::uint32_t> ranks) {
  if (auto fits = check_split(ranks, seat_.world); !fits) return fits.failure();
  const auto turn = calls_ % 2;
  const auto number = seat_.rank == 0 ? memory_->header().groups.fetch_add(1) + std::uint64_t{1} : 0;
  if (auto shown = show({signature_of_split(ranks), number}); !shown) return shown.failure();
  const auto group = line(0).common[turn].group;
  if (group == 0 || group >= limits::rank_groups_max)
    return error{errc::no_credit, "more than " + std::to_string(limits::rank_groups_max) + " rank groups"};
  const auto place = std::find(ranks.begin(), ranks.end(), seat_.rank);
  if (place == ranks.end()) return std::unique_ptr<rank_group>{};
  auto seat = seat_;
  seat.group = static_cast<std::uint32_t>(group);
  seat.world = static_cast<std::uint32_t>(ranks.size());
  seat.rank = static_cast<std::uint32_t>(place - ranks.begin());
  return make(memory_, seat);
}

// --- calls of two ---------------------------------------------------------------------------------------

expected<void> shm_group::run_pair(const group_operation& what) {
  if (auto found = find_partner(what); !found) return found;
  return what.call == group_call::send ? give(what) : receive(what);
}

// Shows the call to the peer, and waits for the peer's. A peer that waits for all while it is waited for will
// never come.
expected<void> shm_group::find_partner(const group_operation& what) {
  if (meeting_.aborted()) return ended(); // as above
  auto& mine = line(seat_.rank);
  const auto& theirs = line(what.peer);
  const auto number = ++pairs_[what.peer];
  mine.pair = signature_of(what);
  mine.ticket.store(pair_ticket(what.peer, number));
  ring(words().pairs);
  const auto wanted = pair_ticket(seat_.rank, number);
  const auto& arrived = arrivals()[what.peer].sequence;
  const bool there =
      wait_for([&] { return theirs.ticket.load() == wanted || arrived.load() > meeting_.met(); });
  if (!there) return ended();
  const bool came = theirs.ticket.load() == wanted;
  const auto found = came ? theirs.pair : theirs.common[calls_ % 2].shown;
  if (auto fits = check_partners({seat_.rank, mine.pair}, {what.peer, found}); !fits)
    return misfit(fits.failure());
  return {};
}

// At most two pieces are under way; after the last one everything was taken.
expected<void> shm_group::give(const group_operation& what) {
  auto& mine = line(seat_.rank);
  const auto quarter_bytes = part_bytes(2);
  auto given = mine.given.load();
  for (std::size_t at = 0; at == 0 || at < what.in.size(); at += quarter_bytes) {
    if (!wait_for([&] { return given - mine.taken.load() < 2; })) return ended();
    move_bytes(half(seat_.rank) + given % 2 * quarter_bytes, what.in.data() + at,
               std::min(quarter_bytes, what.in.size() - at));
    mine.given.store(++given);
    ring(words().pairs);
  }
  if (!wait_for([&] { return mine.taken.load() == given; })) return ended();
  return {};
}

expected<void> shm_group::receive(const group_operation& what) {
  auto& theirs = line(what.peer);
  const auto quarter_bytes = part_bytes(2);
  auto taken = theirs.taken.load();
  for (std::size_t at = 0; at == 0 || at < what.out.size(); at += quarter_bytes) {
    if (!wait_for([&] { return theirs.given.load() != taken; })) return ended();
    move_bytes(what.out.data() + at, half(what.peer) + taken % 2 * quarter_bytes,
               std::min(quarter_bytes, what.out.size() - at));
    theirs.taken.store(++taken);
    ring(words().pairs);
  }
  return {};
}

// False: aborted, and `settled` does not hold.
template <class Settled>
bool shm_group::wait_for(Settled settled) {
  bool held = false;
  wait_at(words().pairs, seat_.tuning, [&] { return (held = settled()) || is_aborted(words().together); });
  return held;
}

// --- both -----------------------------------------------------------------------------------------------

error shm_group::misfit(error why) const {
  abort_group(words());
  return why;
}

error shm_group::ended() const {
  return {errc::aborted, "generation " + to_string(seat_.generation) +
                             ", or its rank group after calls that did not fit, was ended"};
}

std::size_t shm_group::area_at() const {
  return memory_->layout().groups_at + seat_.group * memory_->layout().group_stride;
}

std::span<arrival_line> shm_group::arrivals() const {
  return {reinterpret_cast<arrival_line*>(memory_->bytes_at(area_at())), seat_.world};
}

group_line& shm_group::line(std::uint32_t rank) const {
  const auto lines_at = area_at() + seat_.world * sizeof(arrival_line);
  return *reinterpret_cast<group_line*>(memory_->bytes_at(lines_at + rank * sizeof(group_line)));
}

std::byte* shm_group::half(std::uint32_t rank) const {
  const auto& layout = memory_->layout();
  return memory_->bytes_at(area_at() + layout.staging_at + (2 * rank + turns_ % 2) * layout.half_bytes);
}

// A half cut into `parts`, at cache lines.
std::size_t shm_group::part_bytes(std::size_t parts) const {
  return memory_->layout().half_bytes / parts / line_bytes * line_bytes;
}

} // namespace troupe
