// State layout: where each tensor lies in a worker's state, as checkpoints need to know it.
//
// The state is one arena of float32, little-endian: the parameters, then one segment of the same size and the
// same inner offsets for each optimizer slot ("momentum"; "first_moment", "second_moment").
//
//   | parameters            | slots[0]              | slots[1]              |
//   0                       parameter_elements      2 * parameter_elements
//
// Padding between tensors belongs to no tensor: it is not stored, and is zero after loading.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/error.hpp"

namespace troupe {

struct tensor_spec {
  std::string name;
  std::vector<std::uint64_t> shape; // row-major; empty: one number
  std::uint64_t offset_elements{0}; // from the start of its segment

  [[nodiscard]] std::uint64_t elements() const;
};

struct state_layout {
  std::string program;
  std::vector<tensor_spec> tensors;    // in declared order
  std::uint64_t parameter_elements{0}; // size of one segment, padding included
  std::vector<std::string> slots;      // optimizer slots, in arena order

  [[nodiscard]] std::size_t segments() const { return 1 + slots.size(); }
  [[nodiscard]] std::string_view segment_name(std::size_t segment) const;
  [[nodiscard]] std::uint64_t state_bytes() const { return segments() * parameter_elements * sizeof(float); }
  // Digest of the names, shapes and slots in order: what must agree for a checkpoint to be loadable. Offsets
  // are left out: a build that pads differently reads the same files.
  [[nodiscard]] std::string fingerprint() const;
};

// errc::bad_argument: an empty or repeated name, a bad slot name, a tensor outside its segment, an overlap.
[[nodiscard]] expected<void> validate(const state_layout& layout);

// The bytes of one tensor within `arena` [state_bytes()].
[[nodiscard]] std::span<std::byte> tensor_bytes(const state_layout& layout, std::span<std::byte> arena,
                                                std::size_t segment, std::size_t tensor);
[[nodiscard]] std::span<const std::byte> tensor_bytes(const state_layout& layout,
                                                      std::span<const std::byte> arena, std::size_t segment,
                                                      std::size_t tensor);

// Digest over all parameters in declared order, padding left out (CONTRACT: weights_digest).
[[nodiscard]] std::string weights_digest_of(const state_layout& layout, std::span<const std::byte> arena);

// Product of `shape`, or nothing where it exceeds `elements_max`.
[[nodiscard]] expected<std::uint64_t> shape_product(std::span<const std::uint64_t> shape,
                                                    std::uint64_t elements_max);

} // namespace troupe
