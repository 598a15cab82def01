// NCCL member: one rank of one generation on its device; the turns of its sums and general operations.
//
// Flow:     all_reduce, start -> [turns] -> one at a time on the device's stream -> done
// Owns:     the memory that the device lends it, until it leaves.
// Runs on:  the owner thread.
// Invariants: NS-1, NS-2 (nccl_communicator.hpp), GR-1, GR-2, GR-6 (rank_group.hpp).
//   NM-1    sums and calls of all groups are carried out one after another, in the order in which this rank
//           made them. A rank whose order is another one than its peers' is told that its calls do not fit;
//           where a sum is concerned, it waits until the generation ends.
//   NM-2    calls that do not fit end the generation at the ranks that were told; whoever hears of that ends
//           it for the others, as after an abort (NS-2).
// Why:      docs/design/0037-collectives-on-gpus.md, docs/design/0049-rank-groups-on-gpus.md
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/seams/collective.hpp"
#include "transports/nccl/gpu_device.hpp"
#include "transports/nccl/nccl_call.hpp"
#include "transports/nccl/sum_layout.hpp"

namespace troupe {

// A general operation that waits for its turn, or has it.
struct nccl_pending {
  std::shared_ptr<nccl_seat> seat;
  group_operation what{};
  call_signature shown{};
  group_done done;
  expected<void> refused{}; // does not fit the group: waits for its turn only (GR-1)
};

class nccl_member final : public gpu_member {
public:
  // Lent by the device.
  struct lent_memory {
    std::byte* device{nullptr}; // [layout.bytes() + box_bytes(shape)]
    // Where sums are of host memory (gpu_settings), else null.
    std::byte* source{nullptr}; // [sum_layout::need_at_most(shape)]
    std::byte* target{nullptr}; // likewise
  };
  nccl_member(std::shared_ptr<gpu_device> on, const collective_shape& shape, sum_layout layout,
              std::uint32_t rank, lent_memory memory);
  [[nodiscard]] static std::size_t box_bytes(const collective_shape& shape); // behind the layout's

  [[nodiscard]] const collective_shape& shape() const { return shape_; }
  [[nodiscard]] std::uint32_t rank() const { return rank_; }
  [[nodiscard]] executor& queue() const { return device_->queue(); }
  [[nodiscard]] std::span<float> contribution(std::size_t index);
  // Of host memory this goes to the device meanwhile; other sums start whole.
  void begin(element_range part);
  void all_reduce(all_reduce_done done);
  void start(nccl_pending call);
  [[nodiscard]] std::uint64_t arrived() const { return arrived_.load(); }          // sums begun; any thread
  [[nodiscard]] expected<void> room(const nccl_seat& seat) const;                  // GR-6
  [[nodiscard]] const error* ended() const { return ended_ ? &*ended_ : nullptr; } // why it was
  void retire(const nccl_seat& seat);                                              // its group is gone
  // The last of it: whoever waits is told, and the memory can be lent again.
  void leave();
  [[nodiscard]] std::shared_ptr<nccl_seat> seat_of_all() const;

  // --- gpu_member ---
  void ready(std::span<const nccl::comm> on) override;
  void poison(const error& why) override;
  [[nodiscard]] bool look() override;

private:
  // Calls that the library may finish later (`status`); the next one follows then, in a look.
  enum class stage : std::uint8_t { idle, exchanging, gathering, marked }; // of a sum
  using turn = std::optional<nccl_pending>;                                // nothing: the sum

  void add(turn made);
  [[nodiscard]] turn take_first();
  void advance();
  void begin_sum();
  bool copy_up(element_range part);
  void begin_call();
  [[nodiscard]] bool look_at_sum();
  [[nodiscard]] bool look_at_call();
  bool add_and_gather();
  bool copy_down_and_mark();
  bool mark();
  [[nodiscard]] std::span<const float> sum_here();
  bool finish_when_reached();
  void follow(nccl_call::progress made);
  void finish_call();
  void end_turns();
  [[nodiscard]] std::string ended_text() const;
  [[nodiscard]] bool may_issue() const { return device_->may_issue(shape_.generation); }
  bool after(const nccl_answer& answer);
  bool failed(const error& why);

  std::shared_ptr<gpu_device> device_;
  const collective_shape shape_;
  const std::uint32_t rank_;
  const sum_layout layout_;
  std::byte* const memory_;
  std::byte* const source_; // null: sums are of device memory
  std::byte* const target_;
  const std::vector<transfer> transfers_;
  const kernels::sum_arguments sum_;
  nccl_call call_; // the one whose turn it is
  nccl::comm comm_{nullptr};
  nccl::comm group_comm_{nullptr}; // its own: a call never meets a sum (NM-1)
  std::deque<turn> turns_;
  bool begun_{false}; // the first turn
  bool ending_{false};
  stage stage_{stage::idle};
  all_reduce_done done_;
  std::optional<error> ended_;
  std::uint64_t sums_{0};
  std::atomic<std::uint64_t> arrived_{0};
  element_range early_; // of the coming sum, copied to the device already
};

} // namespace troupe
