// Ring member: one process's part in one generation; outlives its communicator until the transport lets go.
//
// Flow:     communicator (device) -> [member] -> its way of summing, transport (event loop) -> device
// Owns:     the contributions' memory, and the way with its memory. Shared by the communicator, the hub,
//           every posted task, and every transfer that the transport has not given back.
// Runs on:  as each call says. Tasks go from the device to the loop and back; nothing blocks.
// Fails:    errc::aborted. A peer that cannot be reached is silence: the sum is not complete until the
//           director ends the generation (CO-2).
// Invariants: CO-1 to CO-4 (collective.hpp), and
//   RM-1    nothing is sent to a peer before it has said that it is connected in this generation.
//   RM-2    a rank is at most one sum ahead of another: what is of neither this sum nor the next is dropped.
//   RM-3    a sum is over only when all has come and the transport has let go of all that left: whoever has
//           it may overwrite its contributions.
//   RM-4    memory that the transport may read or write lives until it has let go of it.
// Why:      docs/design/0036-sums-across-hosts.md
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "runtime/policy/canonical_sum.hpp"
#include "runtime/seams/collective.hpp"
#include "runtime/seams/executor.hpp"
#include "runtime/seams/rank_group.hpp"
#include "runtime/seams/sum_parts.hpp"
#include "transports/ring/ring_groups.hpp"
#include "transports/ring/ring_memory.hpp"
#include "transports/ring/ring_plan.hpp"
#include "transports/ring/ring_sum.hpp"

namespace troupe {

class ring_calls;
class ring_hub;

class ring_member final : public std::enable_shared_from_this<ring_member> {
public:
  // On the device: allocates and touches. Throws std::bad_alloc.
  [[nodiscard]] static std::shared_ptr<ring_member> make(std::shared_ptr<ring_hub> hub,
                                                         const collective_shape& shape, rank_id rank,
                                                         ring_way way, const ring_pieces& pieces);

  // --- the communicator's side; on the device but for abort and arrivals (any thread) ---
  [[nodiscard]] std::span<float> contribution(std::size_t index);
  void begin(element_range part);
  void all_reduce(all_reduce_done done);
  void abort() noexcept;
  [[nodiscard]] std::vector<std::uint64_t> arrivals() const;
  void retire(); // the communicator is gone: nobody waits for an answer

  // --- the hub's side; on the loop ---
  [[nodiscard]] const collective_shape& shape() const { return shape_; }
  [[nodiscard]] std::uint32_t rank() const { return rank_; }
  [[nodiscard]] std::optional<std::uint32_t> rank_of(incarnation_id who) const;
  void on_here(std::uint32_t from);
  void on_frame(std::uint32_t from, const ring_frame& frame);
  [[nodiscard]] std::span<std::byte> on_announced(std::uint32_t from, const ring_transfer& what,
                                                  std::uint64_t bytes);
  void on_received(std::uint32_t from, const ring_transfer& what, bool whole);
  void on_group_frame(std::uint32_t from, const ring_frame& frame);
  [[nodiscard]] bool lends() const { return lent_ > 0; } // the transport may write into this memory
  void say(std::uint32_t to, ring_word what);

  // --- its groups' side: calls on the device, talks on the loop ---
  [[nodiscard]] rank_group* group() const { return group_.get(); } // null: the shape asked for none
  void add_calls(std::weak_ptr<ring_calls> made);
  [[nodiscard]] ring_groups& groups() { return groups_; }
  [[nodiscard]] bool is_here(std::uint32_t rank) const { return here_[rank]; }
  void send(std::uint32_t to, const ring_frame& frame, std::span<const std::byte> values);
  void send_block(std::uint32_t to, ring_transfer what, std::span<const std::byte> block, bulk_done done);
  void count_malformed();
  [[nodiscard]] error ended() const;

  // --- the way's side; on the loop ---
  [[nodiscard]] std::uint64_t begun() const { return begun_; }
  [[nodiscard]] std::uint64_t arrived(std::uint32_t rank) const { return arrived_[rank].load(); }
  [[nodiscard]] bool aborted() const { return aborted_.load(); } // any thread
  [[nodiscard]] canonical_sum& plan() { return plan_; }          // evaluates where its way does, always
  [[nodiscard]] const wire_format& format() const { return plan_.format(); }
  [[nodiscard]] std::span<const float> own(std::uint32_t index);
  [[nodiscard]] ring_memory& memory();
  // `values` are all elements of a part, or none; they travel packed.
  void send_part(std::uint32_t to, std::uint32_t index, std::span<const float> values);
  void send_piece(std::uint32_t to, ring_transfer what, std::span<const std::byte> packed, bulk_done done);
  template <class Work>
  void on_device(Work work); // skipped after an abort
  template <class Work>
  void on_lane(Work work); // likewise: where sums are added up while the device goes on
  template <class Work>
  void on_loop(Work work);                   // likewise
  void complete(std::span<const float> sum); // on the device

private:
  ring_member(std::shared_ptr<ring_hub> hub, const collective_shape& shape, rank_id rank);
  [[nodiscard]] bool end(); // false: it has ended already
  void open_sum();
  template <class Work>
  void post_to(executor& where, Work work);
  [[nodiscard]] std::byte* frame_with(ring_frame frame, std::size_t bytes);
  void send_frame(std::uint32_t to);
  void end_groups();
  [[nodiscard]] executor& loop() const;
  [[nodiscard]] executor& device() const;
  [[nodiscard]] executor& lane() const;

  const std::shared_ptr<ring_hub> hub_;
  const collective_shape shape_;
  const std::uint32_t rank_;
  const std::size_t stride_; // elements from one contribution to the next
  canonical_sum plan_;
  ring_memory::block contributions_;
  std::unique_ptr<ring_sum> way_;

  std::atomic<bool> aborted_{false};
  std::vector<std::atomic<std::uint64_t>> arrived_; // by rank; the own one is written on the device

  all_reduce_done done_; // device only, like the next
  std::uint64_t called_{0};
  sum_parts parts_; // of the coming sum
  std::unique_ptr<rank_group> group_;
  std::vector<std::weak_ptr<ring_calls>> calls_; // of all groups

  std::uint64_t begun_{0}; // loop only, like the rest
  std::vector<bool> here_; // by rank
  std::map<incarnation_id, std::uint32_t> ranks_;
  std::size_t lent_{0};
  ring_groups groups_;
  std::vector<std::byte> outgoing_; // a message's bytes
};

template <class Work>
void ring_member::post_to(executor& where, Work work) {
  where.post([self = shared_from_this(), work = std::move(work)]() mutable {
    if (!self->aborted()) work();
  });
}

template <class Work>
void ring_member::on_device(Work work) {
  post_to(device(), std::move(work));
}

template <class Work>
void ring_member::on_lane(Work work) {
  post_to(lane(), std::move(work));
}

template <class Work>
void ring_member::on_loop(Work work) {
  post_to(loop(), std::move(work));
}

} // namespace troupe
