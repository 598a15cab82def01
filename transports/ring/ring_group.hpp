// Ring group: general operations between hosts; one member of one group of one generation.
//
// Flow:     `in` (anywhere) -> outbox -> [talk: rounds] -> inbox -> `out` (anywhere)
// Owns:     its calls; what they name is not touched any more when their `done` has been called: the
//           transport sees the boxes only, so an abort waits for nothing.
// Runs on:  the device; nothing blocks. Calls wait in a queue, one is under way.
// Fails:    as the seam says; errc::out_of_memory for the boxes of a group that is split off.
//
// A call goes in pieces that fit the boxes, a round each; a large all-reduce two: parts to whoever reduces
// them, then what was reduced to all. A group that is split off is numbered by the splits that led to it,
// which all its members have made in one order; its calls wait until all have agreed on the split.
//
// Invariants: GR-1 to GR-6 (rank_group.hpp), RT-1 to RT-3 (ring_talk.hpp).
// Why:      docs/design/0042-rank-groups-across-hosts.md
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <vector>

#include "runtime/policy/group_call.hpp"
#include "runtime/policy/rank_reduction.hpp"
#include "runtime/seams/rank_group.hpp"
#include "transports/ring/ring_talk.hpp"

namespace troupe {

class ring_member;

class ring_calls final : public std::enable_shared_from_this<ring_calls> {
public:
  ring_calls(ring_member& owner, std::shared_ptr<ring_talk> talk, bool held);

  [[nodiscard]] const ring_talk& talk() const { return *talk_; }
  void start(const group_operation& what, group_done done);
  [[nodiscard]] expected<std::unique_ptr<rank_group>> split(std::span<const std::uint32_t> ranks);
  void release(); // all have agreed on the split that made it
  void close();   // every pending and later call ends with errc::aborted
  void retire();  // the group is gone: nobody waits for an answer

private:
  struct call {
    group_operation what;
    call_signature shown;
    group_done done;
    expected<void> refused{}; // does not fit the group: waits for its turn only (GR-1)
  };
  struct span_of { // elements
    std::size_t begin{0};
    std::size_t count{0};
  };

  void add(call made);
  [[nodiscard]] bool over() const;           // every call ends with errc::aborted
  [[nodiscard]] expected<void> room() const; // GR-6
  void advance();
  void finish(expected<void> result);
  void run_round(bool opens);
  void on_settled(expected<void> result);
  // A round of the piece: from `in` to the outbox, and what goes where; from the boxes to `out`.
  void stage();
  void take();
  void take_reduced(std::size_t own_at, std::size_t count, std::byte* out);
  void stage_reduced_slice();
  void take_slices();

  [[nodiscard]] bool in_slices() const;
  [[nodiscard]] std::size_t piece_elements() const;
  [[nodiscard]] span_of slice_of(std::uint32_t rank) const;
  [[nodiscard]] const group_operation& what() const { return calls_.front().what; }
  [[nodiscard]] std::byte* part(std::byte* box, std::uint32_t rank) const {
    return box + rank * talk_->part_bytes();
  }
  void send_to_others(std::span<const std::byte> block);
  void expect_from_others(std::size_t bytes);
  [[nodiscard]] error ended() const;

  ring_member& owner_;
  const std::shared_ptr<ring_talk> talk_;
  rank_reduction reduction_;
  std::vector<const std::byte*> inputs_; // scratch: by rank
  std::deque<call> calls_;
  std::uint32_t last_split_; // number
  bool held_;
  bool busy_{false}; // the first call is under way
  bool closed_{false};
  span_of piece_;
  bool reduced_{false}; // this piece's slices are, and go to all
};

// Of all ranks; registers itself with its member.
[[nodiscard]] std::unique_ptr<rank_group> make_ring_group(const std::shared_ptr<ring_member>& owner);

} // namespace troupe
