// Sum layout: where a rank's contributions, received parts and sum lie, and what it sends to whom.
//
// A canonical sum on devices: the elements are cut into one slice a rank, all equal. Each rank receives the
// others' contributions of its own slice, adds them along the tree (canonical_plan.hpp), and all gather the
// slices. Each contribution crosses a link once, each slice of the sum world - 1 times.
//
// Layout:   contributions [own slots x stride] | received [(slots - own) x slice] | sum [stride]
//           | the tables that the sum's kernel reads
// Runs on:  anywhere: pure.
// Invariants:
//   SL-1    slices cover [0, elements) in rank order; stride = world x slice; what pads it means nothing.
//   SL-2    what a rank sends to another one, and what that one expects, are the same parts in one order.
// Why:      docs/design/0037-collectives-on-gpus.md
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "runtime/base/error.hpp"
#include "runtime/seams/collective.hpp"
#include "transports/nccl/gpu.hpp"

namespace troupe {

// Bytes that a rank is lent: of the device; of the host, where sums are of its memory.
struct memory_need {
  std::size_t device{0};
  std::size_t source{0}; // contributions, which lie there as on the device
  std::size_t target{0}; // the sum
};

class sum_layout {
public:
  // errc::bad_argument for an empty, too large or too deep shape, or a rank outside of it.
  [[nodiscard]] static expected<sum_layout> of(const collective_shape& shape, rank_id rank);

  // Enough for whichever rank of that shape, which is possible.
  [[nodiscard]] static memory_need need_at_most(const collective_shape& shape);

  [[nodiscard]] std::uint32_t own_slots() const { return own_slots_; }
  [[nodiscard]] std::size_t slice() const { return slice_; }   // elements
  [[nodiscard]] std::size_t stride() const { return stride_; } // elements from one contribution to the next
  [[nodiscard]] std::size_t bytes() const { return bytes_; }   // of everything

  // With `base` the memory [bytes] on the device:
  [[nodiscard]] float* contribution(std::byte* base, std::uint32_t index) const;
  [[nodiscard]] float* sum(std::byte* base) const; // [stride]
  [[nodiscard]] float* own_slice(std::byte* base) const;
  // Sends and receives of one sum, in the order that their peers expect.
  [[nodiscard]] std::vector<transfer> transfers(std::byte* base) const;
  // What the kernel reads; to be copied to `tables_at` once.
  [[nodiscard]] std::vector<std::byte> tables(std::byte* base) const;
  [[nodiscard]] std::byte* tables_at(std::byte* base) const { return base + tables_offset_; }
  [[nodiscard]] kernels::sum_arguments arguments(std::byte* base) const;

private:
  [[nodiscard]] float* slot(std::byte* base, std::uint32_t number) const; // own slice of any contribution

  std::uint32_t rank_{0};
  std::uint32_t world_{1};
  std::uint32_t own_slots_{0};
  std::size_t slice_{0};
  std::size_t stride_{0};
  std::size_t received_offset_{0}; // bytes
  std::size_t sum_offset_{0};
  std::size_t tables_offset_{0};
  std::size_t bytes_{0};
  std::vector<std::uint32_t> first_slots_;
  std::vector<std::uint32_t> program_;
};

} // namespace troupe
