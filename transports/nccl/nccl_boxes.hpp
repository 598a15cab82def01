// NCCL boxes: the device memory that general operations between ranks go through.
//
// Layout:   shown [one entry] | shown to us [an entry a rank] | outbox | inbox
// Runs on:  anywhere: pure.
// Invariants:
//   NB-1    a group of W members cuts a box into W parts of equal size, multiples of 64 bytes, at least 64;
//           every group of the same members cuts alike.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "runtime/policy/group_call.hpp"

namespace troupe {

// What members show each other before anything of a call moves.
struct nccl_shown {
  call_signature call;
  std::uint32_t group{0};
  std::uint32_t unused{0};
};
static_assert(sizeof(nccl_shown) == 32);

class nccl_boxes {
public:
  static constexpr std::size_t line_bytes = 64;

  // For `world` ranks, which use about `group_bytes`.
  nccl_boxes(std::byte* base, std::size_t group_bytes, std::uint32_t world)
      : base_{base}
      , group_bytes_{group_bytes}
      , world_{world} {}

  [[nodiscard]] std::size_t bytes() const { return shown_bytes() + 2 * box_bytes(); }
  [[nodiscard]] std::byte* shown() const { return base_; }
  [[nodiscard]] std::byte* shown_by(std::uint32_t rank) const {
    return base_ + (1 + rank) * sizeof(nccl_shown);
  }
  [[nodiscard]] std::byte* outbox() const { return base_ + shown_bytes(); }
  [[nodiscard]] std::byte* inbox() const { return outbox() + box_bytes(); }
  // Of a group of `members`.
  [[nodiscard]] std::size_t part_bytes(std::size_t members) const {
    return std::max(line_bytes, group_bytes_ / 2 / members / line_bytes * line_bytes);
  }

private:
  [[nodiscard]] std::size_t shown_bytes() const {
    return ((1 + world_) * sizeof(nccl_shown) + line_bytes - 1) / line_bytes * line_bytes;
  }
  [[nodiscard]] std::size_t box_bytes() const {
    return std::max(world_ * line_bytes, group_bytes_ / 2 / line_bytes * line_bytes);
  }

  std::byte* base_;
  std::size_t group_bytes_;
  std::uint32_t world_;
};

} // namespace troupe
