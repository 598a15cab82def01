// Rank group over shared memory: one member of one group of one generation on this host.
//
// Flow:     `in` (anywhere) -> the member's staging (in the segment) -> meeting -> `out` (anywhere)
// Owns:     a share in the segment's mapping; scratch of a few KiB.
// Runs on:  the device's executor, whose thread blocks in every call.
// Fails:    as the seam says; errc::internal when the segment was overwritten (the group is aborted then).
//
// A call of all members goes through the staging in pieces. Each piece: copy what others need into one half
// of the own staging; meet; take what is needed from everybody's half. The halves alternate, so that a half
// is written again only after a meeting that its last reader has reached. A large all-reduce meets twice:
// each rank reduces one slice of the piece, in place, then all take all slices. The first meeting of a call
// also publishes what each member calls; if that differs, all see it and nothing was taken.
//
// A send goes through the half of the sender's staging that the next call of all will use: everybody is done
// with it. In two quarters, by turns; sender and receiver count pieces in the sender's line. So a pair costs
// no memory of its own, and a send ends when its receive has taken everything.
//
// A group that is split off has lines, meeting and staging of its own, in an area that no other one gets.
//
// Invariants: GR-1 to GR-6 (rank_group.hpp), ME-1 (meeting.hpp), GL-1, GL-2 (group_line.hpp).
//   SR-1    a member writes to its own staging only; between the two meetings of an all-reduce only to the
//           slice that nobody else reads.
//   SR-2    what others wrote is compared or copied; offsets come from the layout and the own call (SG-2).
//   SR-3    the steady state neither allocates nor faults in the segment: everything was touched by `make`.
// Why:      docs/design/0033-rank-groups.md
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "runtime/base/ids.hpp"
#include "runtime/policy/group_call.hpp"
#include "runtime/policy/rank_reduction.hpp"
#include "runtime/seams/rank_group.hpp"
#include "transports/shm/group_line.hpp"
#include "transports/shm/meeting.hpp"
#include "transports/shm/segment.hpp"

namespace troupe {

// Which member of which group.
struct group_seat {
  generation_id generation;
  std::uint32_t group{0}; // number within the segment; 0: all ranks
  std::uint32_t world{1};
  std::uint32_t rank{0};
  wait_tuning tuning;
};

class shm_group final : public rank_group {
public:
  // Touches the group's memory. errc: storage_failed.
  [[nodiscard]] static expected<std::unique_ptr<rank_group>> make(std::shared_ptr<segment> memory,
                                                                  const group_seat& seat);

  [[nodiscard]] std::uint32_t rank() const override { return seat_.rank; }
  [[nodiscard]] std::uint32_t world() const override { return seat_.world; }
  void start(const group_operation& what, group_done done) override { done(run(what)); }
  [[nodiscard]] expected<std::unique_ptr<rank_group>> split(std::span<const std::uint32_t> ranks) override;

private:
  // Elements [begin, begin + count) of each part.
  struct piece {
    std::size_t begin{0};
    std::size_t count{0};
  };
  shm_group(std::shared_ptr<segment> memory, const group_seat& seat);
  [[nodiscard]] expected<void> touch() const;
  [[nodiscard]] expected<void> run(const group_operation& what);

  // Calls of all members.
  [[nodiscard]] expected<void> run_together(const group_operation& what);
  [[nodiscard]] expected<void> show(const common_call& mine);
  [[nodiscard]] expected<void> meet();
  [[nodiscard]] std::size_t piece_elements(const group_operation& what) const;
  void stage(const group_operation& what, piece part);
  void take(const group_operation& what, piece part);
  void take_reduced(const group_operation& what, piece part, std::size_t staged_at, std::byte* out);
  [[nodiscard]] expected<void> all_reduce_slices(const group_operation& what, piece part);
  [[nodiscard]] piece slice_of(const group_operation& what, std::size_t count, std::uint32_t rank) const;

  // Calls of two.
  [[nodiscard]] expected<void> run_pair(const group_operation& what);
  [[nodiscard]] expected<void> find_partner(const group_operation& what);
  [[nodiscard]] expected<void> give(const group_operation& what);
  [[nodiscard]] expected<void> receive(const group_operation& what);
  template <class Settled>
  [[nodiscard]] bool wait_for(Settled settled);

  [[nodiscard]] error misfit(error why) const;
  [[nodiscard]] error ended() const;
  [[nodiscard]] group_words& words() const { return memory_->words_of(seat_.group); }
  [[nodiscard]] std::size_t area_at() const;
  [[nodiscard]] std::span<arrival_line> arrivals() const;
  [[nodiscard]] group_line& line(std::uint32_t rank) const;
  [[nodiscard]] std::byte* half(std::uint32_t rank) const; // the one of this turn
  [[nodiscard]] std::size_t part_bytes(std::size_t parts) const;

  std::shared_ptr<segment> memory_;
  group_seat seat_;
  meeting meeting_;
  rank_reduction reduction_;
  std::vector<call_signature> shown_;    // scratch: what everybody calls
  std::vector<const std::byte*> inputs_; // scratch: by rank
  std::uint64_t calls_{0};               // of all members
  std::uint64_t turns_{0};               // pieces of these
  std::vector<std::uint64_t> pairs_;     // by peer: calls of the two
};

} // namespace troupe
