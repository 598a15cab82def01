// NCCL group: the rank group seam on GPUs; one member of one group of one generation.
//
// Owns:     a share in its generation's member, where its calls wait for their turns.
// Runs on:  the owner thread; may be destroyed on any. Calls that are then pending end the generation here,
//           and nobody waits for their answers.
// Invariants: GR-1 to GR-6 (rank_group.hpp), NM-1 (nccl_member.hpp), NG-1 to NG-3 (nccl_call.hpp).
// Why:      docs/design/0049-rank-groups-on-gpus.md
#pragma once

#include <memory>
#include <span>

#include "runtime/seams/rank_group.hpp"
#include "transports/nccl/nccl_member.hpp"

namespace troupe {

class nccl_group final : public rank_group {
public:
  nccl_group(std::shared_ptr<nccl_member> member, std::shared_ptr<nccl_seat> seat)
      : member_{std::move(member)}
      , seat_{std::move(seat)} {}
  ~nccl_group() override;
  nccl_group(const nccl_group&) = delete;
  nccl_group& operator=(const nccl_group&) = delete;

  [[nodiscard]] std::uint32_t rank() const override { return seat_->rank; }
  [[nodiscard]] std::uint32_t world() const override { return seat_->world(); }
  void start(const group_operation& what, group_done done) override;
  [[nodiscard]] expected<std::unique_ptr<rank_group>> split(std::span<const std::uint32_t> ranks) override;

private:
  std::shared_ptr<nccl_member> member_;
  std::shared_ptr<nccl_seat> seat_;
};

} // namespace troupe
