// Communicator over NCCL: the canonical sum between GPUs, and general operations where the shape has some.
//
// Flow:     contributions -> exchange of slices -> ordered sum of the own slice -> all-gather -> sum
// Owns:     a share in the device, and the memory that it lends. `contribution` and the sum are memory of the
//           device, or of the host, as the device is set (gpu_settings).
// Runs on:  the owner thread; `abort` on any. `all_reduce` issues and returns; looks find its end.
// Fails:    errc::aborted after an abort of this rank, a failure of the library or device, or a deadline; the
//           text says which.
// Invariants: CO-1 to CO-5 (collective.hpp), NC-1 to NC-11, SL-1, SL-2, NM-1, NM-2 (nccl_member.hpp).
//   NS-1    a sum is handed out only if no fault was known when its end was seen: data after an abort is
//           poisoned.
//   NS-2    an abort frees this rank alone: whoever ends a generation aborts every rank of it. Ranks leave
//           with numbers of sums that differ by at most one.
// Why:      docs/design/0037-collectives-on-gpus.md
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "runtime/seams/collective.hpp"
#include "transports/nccl/gpu_device.hpp"

namespace troupe {

class nccl_member;

class nccl_communicator final : public communicator {
public:
  // Owner thread. Returns before the ranks have met; sums wait for that. errc: bad_argument, aborted,
  // out_of_memory, stale_generation.
  [[nodiscard]] static expected<std::unique_ptr<communicator>>
  make(std::shared_ptr<gpu_device> on, const collective_shape& shape, comm_request request);
  ~nccl_communicator() override; // any thread
  nccl_communicator(const nccl_communicator&) = delete;
  nccl_communicator& operator=(const nccl_communicator&) = delete;

  [[nodiscard]] std::span<float> contribution(std::size_t index) override;
  void begin(element_range part, part_done done) override;
  void all_reduce(all_reduce_done done) override;
  void abort() noexcept override;
  // Of others NCCL does not tell: 0.
  [[nodiscard]] std::vector<std::uint64_t> arrivals() const override;
  [[nodiscard]] rank_group* group() override { return group_.get(); }

private:
  nccl_communicator(std::shared_ptr<gpu_device> on, std::shared_ptr<nccl_member> member);
  std::shared_ptr<gpu_device> device_;
  std::shared_ptr<nccl_member> member_;
  std::unique_ptr<rank_group> group_; // null: the shape asked for none
};

} // namespace troupe
