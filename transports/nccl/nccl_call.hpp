// NCCL call: carries out one general operation of one rank on its device, step by step.
//
// Flow:     show -> compare -> for each piece: `in` -> outbox -> exchange -> [ordered reduction] ->
//           [exchange] -> box -> `out`
// Owns:     nothing: the boxes are lent, `in` and `out` are the caller's, of the device or of the host.
// Runs on:  the owner thread. A step issues and returns; a look finds its end (NC-10).
// Fails:    `broken`: the reason is in `failure`, and the generation is of no more use. A call that does not
//           fit what the others called is `over`, with errc::bad_argument.
//
// Everything between ranks is an exchange of parts between pairs. So a call of two, and a call of all, meet
// in the same way whoever takes part: who waits for all sees the call of the one that wants a pair, and a
// group of some ranks needs no communicator of its own.
//
// Invariants: GR-3 to GR-5 (rank_group.hpp), NB-1.
//   NG-1    the library sees the boxes only; `in` and `out` are copied by the device itself, when nothing is
//           under way that needs a peer.
//   NG-2    nothing moves before this member has seen what its peers in the call have shown, and it fits.
//   NG-3    a call that does not fit is told only after its peers have confirmed that they saw it too.
// Why:      docs/design/0049-rank-groups-on-gpus.md
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "runtime/policy/group_call.hpp"
#include "transports/nccl/gpu.hpp"
#include "transports/nccl/nccl_boxes.hpp"

namespace troupe {

// A member's place in one group.
struct nccl_seat {
  // A bit for each split that led to it: the splits of a group are numbered from its own highest bit on, so
  // no two groups of one member have the same number, and all members agree on it.
  std::uint32_t number{0};
  std::vector<std::uint32_t> members; // ranks of the generation, ascending
  std::uint32_t rank{0};              // position among them
  std::uint32_t next_split{0};        // bit
  std::uint32_t under_way{0};         // calls of this member
  [[nodiscard]] std::uint32_t world() const { return static_cast<std::uint32_t>(members.size()); }
};

class nccl_call {
public:
  enum class progress : std::uint8_t { under_way, over, broken };

  nccl_call(gpu& calls, const nccl_boxes& boxes)
      : calls_{calls}
      , boxes_{boxes} {}

  // `what` fits the group; what it names, and `seat`, outlive the call.
  [[nodiscard]] progress begin(nccl::comm on, const nccl_seat& seat, const group_operation& what,
                               const call_signature& shown);
  [[nodiscard]] progress look();
  void drop() { stage_ = stage::idle; } // nothing of it is issued any more

  // Of the call that is over. While it is under way: that it does not fit, once that is known.
  [[nodiscard]] const expected<void>& result() const { return result_; }
  [[nodiscard]] const error& failure() const { return *broken_; }

private:
  enum class stage : std::uint8_t {
    idle,
    showing,   // what is called, to the peers in the call
    parting,   // it does not fit: shown once more, so that no peer is left behind (NG-3)
    moving,    // a piece's parts, to who needs them
    gathering, // the slices that were reduced, to all
    taking,    // the last copies to `out`
  };
  struct span_of { // elements
    std::size_t begin{0};
    std::size_t count{0};
  };

  [[nodiscard]] progress show(stage as);
  [[nodiscard]] progress judge();
  [[nodiscard]] expected<void> compare(std::span<const nccl_shown> seen) const;
  [[nodiscard]] progress move_piece();
  [[nodiscard]] progress issue();
  [[nodiscard]] progress handed_over();
  [[nodiscard]] progress reduce();
  [[nodiscard]] progress mark();
  [[nodiscard]] progress reached();
  [[nodiscard]] progress take_piece();
  [[nodiscard]] progress broke(const error& why);

  void stage_piece();
  void stage_slices();
  void take();
  void send(std::uint32_t rank, const std::byte* from, std::size_t bytes);
  void receive(std::uint32_t rank, std::byte* to, std::size_t bytes);
  void copy(std::byte* to, const std::byte* from, std::size_t bytes);

  template <class Each>
  void each_peer(Each each) const; // of the call
  [[nodiscard]] bool moves_anything() const;
  [[nodiscard]] bool in_slices() const;
  [[nodiscard]] std::size_t piece_elements() const;
  [[nodiscard]] span_of slice_of(std::uint32_t rank) const;
  [[nodiscard]] std::size_t part_bytes() const { return boxes_.part_bytes(seat_->world()); }
  [[nodiscard]] std::byte* out_part(std::uint32_t rank) const {
    return boxes_.outbox() + rank * part_bytes();
  }
  [[nodiscard]] std::byte* in_part(std::uint32_t rank) const { return boxes_.inbox() + rank * part_bytes(); }

  gpu& calls_;
  const nccl_boxes boxes_;
  nccl::comm on_{nullptr};
  const nccl_seat* seat_{nullptr};
  group_operation what_;
  nccl_shown shown_;
  stage stage_{stage::idle};
  bool marked_{false};
  span_of piece_;
  std::vector<transfer> parts_;  // scratch: of one exchange
  std::vector<nccl_shown> seen_; // scratch: by rank
  std::optional<error> broken_{};
  expected<void> result_;
};

} // namespace troupe
