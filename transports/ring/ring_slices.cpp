// Ring slices: every rank adds up its slice of the elements from all contributions and sends it to all.
//
// Flow:     contributions, piece by piece -> the slice's owner -> all of a piece are there: evaluation (on
//           the loop or the lane) -> the finished piece to everybody
// Owns:     room for the others' contributions to the own slice, and the sum.
// Runs on:  the event loop; pieces with many contributions are evaluated on the lane.
//
// A sum in parts: a piece leaves, or is evaluated, once this rank's contributions to it are final.
// Invariants:
//   RS-1    room for contributions takes those of sum n + 1 once the own slice of sum n is evaluated; who has
//           sum n may send them before this rank has it.
//   RS-2    a finished piece goes to a rank only after it has called for that sum: until then it may read the
//           one before.
//   RS-3    at most `ring_transfers_max` transfers to one rank are under way.
//   RS-4    a piece is received and counted once a sum.
#include <algorithm>

#include "runtime/base/probe.hpp"
#include "transports/ring/limits.hpp"
#include "transports/ring/ring_member.hpp"
#include "transports/ring/ring_ways.hpp"

namespace troupe {
namespace {

enum class place : std::uint8_t { empty, lent, full };

class ring_slices final : public ring_sum {
public:
  ring_slices(ring_member& owner, const ring_pieces& pieces);
  void begin(std::uint64_t number) override;
  [[nodiscard]] bool in_parts() const override { return true; }
  void ready(element_range all_so_far) override;
  void close() override;
  void meet(std::uint32_t rank) override;
  void on_arrival(std::uint32_t rank) override { pump(rank); }
  std::span<std::byte> on_announced(std::uint32_t from, const ring_transfer& what,
                                    std::uint64_t bytes) override;
  void on_received(std::uint32_t from, const ring_transfer& what, bool whole) override;

private:
  struct neighbour {
    element_range slice;
    std::size_t pieces{0}; // of the slice
    std::uint32_t slots{0};
    // Out, in this sum.
    bool met{false};
    bool broken{false};                 // a transfer has failed: the sum will not be complete
    std::vector<bool> final_here;       // by piece of the slice: own contributions are
    std::vector<std::size_t> to_send{}; // these pieces, in the order in which they became so
    std::size_t parts_sent{0};
    std::size_t finished_sent{0};
    unsigned under_way{0};
    // In.
    std::vector<place> parts;    // of the own slice: piece x slots + slot
    std::vector<place> finished; // by piece of their slice
  };
  [[nodiscard]] element_range own_piece(std::size_t number) const {
    return piece_of(self().slice, piece_elements_, number);
  }
  [[nodiscard]] neighbour& self() { return ranks_[owner_.rank()]; }
  [[nodiscard]] const neighbour& self() const { return ranks_[owner_.rank()]; }
  // Contributions of `rank` to the own slice; null: it has none, or the slice is empty.
  [[nodiscard]] float* room(std::uint32_t rank, std::uint32_t slot) const {
    return rooms_.data() + (room_index(rank) + slot) * self().slice.size();
  }
  [[nodiscard]] std::size_t room_index(std::uint32_t rank) const; // in others' contributions
  [[nodiscard]] place* place_of(std::uint32_t from, const ring_transfer& what);
  // Elements that a transfer brings, where they are added from or read; and where its bytes land: the same
  // place, or that of the packed values.
  [[nodiscard]] std::span<float> memory_of(std::uint32_t from, const ring_transfer& what);
  [[nodiscard]] element_range range_of(std::uint32_t from, const ring_transfer& what) const;
  [[nodiscard]] std::span<std::byte> landing_of(std::uint32_t from, const ring_transfer& what);
  [[nodiscard]] std::size_t packed_stride() const; // bytes
  [[nodiscard]] std::byte* packed(const ring_memory::block& in, std::size_t number,
                                  std::size_t element) const;
  // What is to leave, packed where it stays until the sum is over (RM-3); each place once a sum.
  [[nodiscard]] std::span<const std::byte> outgoing(const ring_memory::block& in, std::size_t number,
                                                    element_range range, std::span<const float> values);
  [[nodiscard]] std::uint64_t sum_for(const ring_transfer& what) const {
    return what.finished ? number_ : parts_for_;
  }
  void empty_rooms();
  void count(std::size_t piece);
  void evaluate(std::size_t piece);
  void on_evaluated(std::size_t piece);
  void pump(std::uint32_t rank);
  void send_next_part(std::uint32_t rank);
  void send_next_finished(std::uint32_t rank);
  void send(std::uint32_t rank, const ring_transfer& what, std::span<const std::byte> packed_values);
  void on_sent(std::uint32_t rank, bool whole);
  void check_complete();

  ring_member& owner_;
  const std::size_t piece_elements_;
  const bool on_loop_;
  std::vector<neighbour> ranks_;
  ring_memory::block rooms_, sum_;
  // Where the wire rounds: packed own contributions, rooms and sum, each as long as all elements.
  ring_memory::block packed_own_, packed_rooms_, packed_sum_;
  std::size_t finished_packed_{0};   // own pieces of this sum, in the order of `done_`
  std::vector<const float*> inputs_; // by slot, each at the first element of the own slice
  std::uint64_t number_{0};          // of the sum under way, or the last one
  std::uint64_t parts_for_{1};       // of the sum that the rooms take contributions of
  std::vector<std::size_t> missing_; // by own piece: contributions of others, and the own call
  std::vector<std::size_t> done_;    // own pieces evaluated in this sum, in order
  std::size_t finished_missing_{0};  // pieces of others' slices
  std::size_t sends_left_{0};
  bool closed_{false}; // this rank's contributions are all final, and it waits for the sum
};

ring_slices::ring_slices(ring_member& owner, const ring_pieces& pieces)
    : owner_{owner}
    , piece_elements_{pieces.bytes / sizeof(float)}
    , on_loop_{owner.plan().slots() * pieces.bytes <= pieces.loop_bytes}
    , ranks_(owner.shape().world)
    , sum_{owner.memory().take(owner.shape().elements)} {
  const auto& shape = owner.shape();
  for (std::uint32_t rank = 0; rank < shape.world; ++rank) {
    auto& each = ranks_[rank];
    each.slice = slice_of(shape.elements, shape.world, rank);
    each.pieces = pieces_of(each.slice, piece_elements_);
    each.slots = owner.plan().slots_of(rank);
  }
  rooms_ = owner.memory().take((owner.plan().slots() - self().slots) * self().slice.size());
  if (!owner.format().exact()) {
    const auto floats = packed_stride() / sizeof(float);
    packed_own_ = owner.memory().take(self().slots * floats);
    packed_rooms_ = owner.memory().take((owner.plan().slots() - self().slots) * floats);
    packed_sum_ = owner.memory().take(floats);
  }
  for (std::uint32_t rank = 0; rank < shape.world; ++rank) {
    auto& each = ranks_[rank];
    const bool own = rank == owner.rank();
    each.finished.resize(own ? 0 : each.pieces);
    each.final_here.resize(each.pieces);
    each.to_send.reserve(each.pieces);
    each.parts.resize(own ? 0 : self().pieces * each.slots);
    for (std::uint32_t slot = 0; slot < each.slots; ++slot)
      inputs_.push_back(own ? owner.own(slot).data() + self().slice.begin : room(rank, slot));
  }
  done_.reserve(self().pieces);
  missing_.resize(self().pieces);
  empty_rooms();
}

std::size_t ring_slices::room_index(std::uint32_t rank) const {
  const auto first = owner_.plan().first_slot(rank);
  return rank > owner_.rank() ? first - self().slots : first;
}

// The own slice has been evaluated (RS-1).
void ring_slices::empty_rooms() {
  for (auto& each : ranks_)
    std::ranges::fill(each.parts, place::empty);
  std::ranges::fill(missing_, owner_.plan().slots() - self().slots + 1);
}

void ring_slices::begin(std::uint64_t number) {
  number_ = number;
  done_.clear();
  finished_missing_ = sends_left_ = finished_packed_ = 0;
  closed_ = false;
  for (auto& each : ranks_) {
    each.final_here.assign(each.pieces, false);
    each.to_send.clear();
    if (&each == &self()) continue;
    each.met = false;
    each.parts_sent = each.finished_sent = 0;
    std::ranges::fill(each.finished, place::empty);
    finished_missing_ += each.pieces;
    sends_left_ += each.pieces * self().slots + self().pieces;
  }
  if (self().pieces == 0) parts_for_ = number + 1;
}

void ring_slices::ready(element_range all_so_far) {
  for (std::uint32_t i = 0; i < ranks_.size(); ++i) {
    const auto rank = (owner_.rank() + i) % static_cast<std::uint32_t>(ranks_.size());
    auto& each = ranks_[rank];
    for (std::size_t piece = 0; piece < each.pieces; ++piece) {
      const auto range = piece_of(each.slice, piece_elements_, piece);
      if (each.final_here[piece] || range.begin < all_so_far.begin || range.end > all_so_far.end) continue;
      each.final_here[piece] = true;
      if (i == 0)
        count(piece);
      else
        each.to_send.push_back(piece);
    }
    if (i != 0) pump(rank);
  }
}

void ring_slices::close() {
  closed_ = true;
  check_complete(); // a rank without contributions and elements has only to wait for the others
}

void ring_slices::meet(std::uint32_t rank) {
  owner_.send_part(rank, 0, {}); // says that this rank has called
  ranks_[rank].met = true;
  pump(rank);
}

// --- inward ---------------------------------------------------------------------------------------------

place* ring_slices::place_of(std::uint32_t from, const ring_transfer& what) {
  auto& places = what.finished ? ranks_[from].finished : ranks_[from].parts;
  const bool fits = what.place < places.size() && (sum_for(what) & ring_transfer::sum_mask) == what.sum;
  return fits ? &places[what.place] : nullptr;
}

element_range ring_slices::range_of(std::uint32_t from, const ring_transfer& what) const {
  return what.finished ? piece_of(ranks_[from].slice, piece_elements_, what.place)
                       : own_piece(what.place / ranks_[from].slots);
}

std::span<float> ring_slices::memory_of(std::uint32_t from, const ring_transfer& what) {
  const auto range = range_of(from, what);
  if (what.finished) return {sum_.data() + range.begin, range.size()};
  const auto slot = what.place % ranks_[from].slots;
  return {room(from, slot) + (range.begin - self().slice.begin), range.size()};
}

std::span<std::byte> ring_slices::landing_of(std::uint32_t from, const ring_transfer& what) {
  if (owner_.format().exact()) return std::as_writable_bytes(memory_of(from, what));
  const auto range = range_of(from, what);
  auto* at = what.finished
                 ? packed(packed_sum_, 0, range.begin)
                 : packed(packed_rooms_, room_index(from) + what.place % ranks_[from].slots, range.begin);
  return {at, owner_.format().bytes(range)};
}

std::size_t ring_slices::packed_stride() const {
  return (owner_.format().offset(owner_.shape().elements) + 63) / 64 * 64;
}

std::byte* ring_slices::packed(const ring_memory::block& in, std::size_t number, std::size_t element) const {
  return reinterpret_cast<std::byte*>(in.data()) + number * packed_stride() + owner_.format().offset(element);
}

std::span<const std::byte> ring_slices::outgoing(const ring_memory::block& in, std::size_t number,
                                                 element_range range, std::span<const float> values) {
  if (owner_.format().exact()) return std::as_bytes(values);
  auto* at = packed(in, number, range.begin);
  owner_.format().pack(values, range.begin, at);
  return {at, owner_.format().bytes(range)};
}

std::span<std::byte> ring_slices::on_announced(std::uint32_t from, const ring_transfer& what,
                                               std::uint64_t bytes) {
  auto* into = place_of(from, what);
  if (into == nullptr || *into != place::empty) return {};
  const auto memory = landing_of(from, what);
  if (memory.size() != bytes) return {};
  *into = place::lent;
  return memory;
}

void ring_slices::on_received(std::uint32_t from, const ring_transfer& what, bool whole) {
  auto* into = place_of(from, what);
  if (into == nullptr || *into != place::lent) return;
  *into = whole ? place::full : place::empty;
  if (!whole) return;
  if (!owner_.format().exact())
    owner_.format().unpack(landing_of(from, what).data(), range_of(from, what).begin, memory_of(from, what));
  if (!what.finished) return count(what.place / ranks_[from].slots);
  --finished_missing_;
  check_complete();
}

// One contribution more to an own piece is there, or this rank has called.
void ring_slices::count(std::size_t piece) {
  if (--missing_[piece] != 0) return;
  if (on_loop_) { // while it is in the processor's cache
    evaluate(piece);
    return on_evaluated(piece);
  }
  owner_.on_lane([this, piece] {
    evaluate(piece);
    owner_.on_loop([this, piece] { on_evaluated(piece); });
  });
}

void ring_slices::evaluate(std::size_t piece) {
  const auto range = own_piece(piece);
  const auto base = self().slice.begin;
  owner_.plan().evaluate(inputs_, range.begin - base, range.end - base, sum_.data() + base,
                         store_kind::cached, base);
}

void ring_slices::on_evaluated(std::size_t piece) {
  done_.push_back(piece);
  if (done_.size() == self().pieces) {
    empty_rooms();
    parts_for_ = number_ + 1;
  }
  for (std::uint32_t i = 1; i < ranks_.size(); ++i)
    pump((owner_.rank() + i) % static_cast<std::uint32_t>(ranks_.size()));
  check_complete();
}

// --- outward --------------------------------------------------------------------------------------------

// What is finished goes first: others wait for it.
void ring_slices::pump(std::uint32_t rank) {
  auto& to = ranks_[rank];
  while (to.under_way < limits::ring_transfers_max && !to.broken) {
    const bool called = to.met && owner_.arrived(rank) >= number_; // RS-2
    if (called && to.finished_sent < done_.size())
      send_next_finished(rank);
    else if (to.met && to.parts_sent < to.to_send.size() * self().slots)
      send_next_part(rank);
    else
      return;
  }
}

void ring_slices::send_next_part(std::uint32_t rank) {
  auto& to = ranks_[rank];
  const auto piece = to.to_send[to.parts_sent / self().slots];
  const auto slot = to.parts_sent++ % self().slots;
  const auto range = piece_of(to.slice, piece_elements_, piece);
  const auto from = owner_.own(static_cast<std::uint32_t>(slot));
  send(rank,
       {.sum = number_, .finished = false, .place = static_cast<std::uint32_t>(piece * self().slots + slot)},
       outgoing(packed_own_, slot, range, from.subspan(range.begin, range.size())));
}

void ring_slices::send_next_finished(std::uint32_t rank) {
  const auto which = ranks_[rank].finished_sent++;
  const auto piece = done_[which];
  const auto range = own_piece(piece);
  const std::span<const float> values{sum_.data() + range.begin, range.size()};
  const bool first = which == finished_packed_; // it may be on its way to another rank already
  const auto bytes =
      first || owner_.format().exact()
          ? outgoing(packed_sum_, 0, range, values)
          : std::span<const std::byte>{packed(packed_sum_, 0, range.begin), owner_.format().bytes(range)};
  finished_packed_ += first ? 1 : 0;
  send(rank, {.sum = number_, .finished = true, .place = static_cast<std::uint32_t>(piece)}, bytes);
}

void ring_slices::send(std::uint32_t rank, const ring_transfer& what,
                       std::span<const std::byte> packed_values) {
  ++ranks_[rank].under_way;
  owner_.send_piece(rank, what, packed_values,
                    [this, held = owner_.shared_from_this(), rank](const expected<void>& result) {
                      on_sent(rank, result.has_value());
                    });
}

void ring_slices::on_sent(std::uint32_t rank, bool whole) {
  auto& to = ranks_[rank];
  --to.under_way;
  to.broken = to.broken || probe<"ring.transfer_failed">::when(!whole);
  if (owner_.aborted() || to.broken) return;
  --sends_left_;
  pump(rank);
  check_complete();
}

// RM-3. Once a sum: `sends_left_` and `finished_missing_` only fall, `closed_` comes once, and the last event
// of a sum is one of those that lead here.
void ring_slices::check_complete() {
  if (!closed_ || finished_missing_ != 0 || sends_left_ != 0 || done_.size() != self().pieces) return;
  owner_.on_device([this] { owner_.complete({sum_.data(), owner_.shape().elements}); });
}

} // namespace

std::unique_ptr<ring_sum> make_ring_slices(ring_member& owner, const ring_pieces& pieces) {
  return std::make_unique<ring_slices>(owner, pieces);
}

} // namespace troupe
