// Communicator over shared memory: one member of one generation on this host.
//
// Flow:     contributions (in the segment, written in place) -> two meetings -> one sum that all ranks read
// Owns:     a share in the segment's mapping; scratch of a few KiB.
// Runs on:  the device's executor, whose thread blocks in `all_reduce`; parts on the lane, if there is one;
//           `abort` and `arrivals` on any thread.
// Fails:    errc::aborted after an abort by any member or by the director; errc::internal when the segment
//           was overwritten (the generation is aborted then).
//
// Large shapes: meet; add up one slice of the elements from all slots into the one shared result; meet.
// Every byte of a contribution is read once, every byte of the result written once.
// In parts, each part is met for and added up like that by itself, one after the other, then the rest.
// Small shapes: copy the own slots to one of two exchange sets; meet; add up everything, privately. The sets
// alternate, so that a set is overwritten only after a meeting that its last reader has reached. They are
// never summed in parts.
//
// Invariants: CO-1 CO-2 CO-3 (collective.hpp), ME-1 (meeting.hpp): all members get the same sum or all none.
//   SC-1    between meetings a rank writes its own slots and its own slice only.
//   SC-3    the meeting is used by one thread at a time: `all_reduce` and destruction wait for the lane.
//   SC-2    the steady state neither allocates nor faults: everything was touched by `make`.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "runtime/policy/canonical_sum.hpp"
#include "runtime/seams/collective.hpp"
#include "runtime/seams/sum_parts.hpp"
#include "transports/shm/meeting.hpp"
#include "transports/shm/segment.hpp"
#include "transports/shm/shm_lane.hpp"

namespace troupe {

class shm_communicator final : public communicator {
public:
  // Claims the rank and touches the memory. errc: bad_argument (the rank is taken), aborted, storage_failed.
  [[nodiscard]] static expected<std::unique_ptr<communicator>> make(std::shared_ptr<segment> memory,
                                                                    const collective_shape& shape,
                                                                    rank_id rank, wait_tuning tuning,
                                                                    executor* lane = nullptr);
  // Parts that are under way are given up, and the generation with them.
  ~shm_communicator() override;
  shm_communicator(const shm_communicator&) = delete;
  shm_communicator& operator=(const shm_communicator&) = delete;

  [[nodiscard]] std::span<float> contribution(std::size_t index) override;
  void begin(element_range part, part_done done) override;
  void all_reduce(all_reduce_done done) override;
  void abort() noexcept override;
  [[nodiscard]] std::vector<std::uint64_t> arrivals() const override;
  [[nodiscard]] rank_group* group() override { return group_.get(); }

private:
  shm_communicator(std::shared_ptr<segment> memory, const collective_shape& shape, rank_id rank,
                   wait_tuning tuning, executor* lane);
  [[nodiscard]] expected<void> touch() const;
  [[nodiscard]] expected<void> join_group(wait_tuning tuning);
  [[nodiscard]] expected<std::span<const float>> sum();
  [[nodiscard]] expected<std::span<const float>> sum_alone();
  [[nodiscard]] expected<std::span<const float>> sum_exchanged();
  [[nodiscard]] expected<std::span<const float>> sum_in_slices();
  void add_up(std::span<const element_range> parts);
  [[nodiscard]] error ended(meeting::outcome why);
  [[nodiscard]] std::size_t stride() const { return memory_->layout().stride / sizeof(float); }
  [[nodiscard]] float* slot(std::uint32_t number) const;
  [[nodiscard]] float* exchange_slot(std::uint32_t set, std::uint32_t number) const;
  [[nodiscard]] element_range slice_of(element_range part) const; // this rank's, cut at cache lines

  std::shared_ptr<segment> memory_;
  collective_shape shape_;
  std::uint32_t rank_;
  canonical_sum plan_;
  meeting meeting_;
  store_kind stores_;
  std::vector<const float*> inputs_[2]; // by exchange set; large shapes use the first
  std::vector<float> private_sum_;      // small shapes only
  std::uint32_t set_{0};
  std::unique_ptr<rank_group> group_; // null: the shape asks for none
  std::uint64_t sums_{0};             // complete ones; every member meets equally often for each
  sum_parts parts_;
  meeting::outcome met_{meeting::outcome::complete}; // of the newest part; once it is another, it stays
  shm_lane lane_;                                    // last: what runs there uses the rest
};

} // namespace troupe
