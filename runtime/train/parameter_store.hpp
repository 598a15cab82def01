// Parameter store: declared parameters, and the one contiguous arena that holds a worker's whole state.
//
// Flow:     model constructor -> declare -> freeze -> [arena] -> optimizer, checkpoint, peer healing
// Owns:     float32 [parameters | optimizer slot 0 | slot 1 | ...], each part of `part_elements`.
// Runs on:  declared and frozen anywhere, once; afterwards the device's executor writes, and others read
//           only while the step engine is idle or asks for a snapshot.
// Fails:    std::invalid_argument out of `declare` and `freeze`: the model's author reads it at start.
// Invariants:
//   PA-1    parameters start at multiples of 16 elements, in declared order; padding is zero, always.
//   PA-2    nothing is declared after `freeze`; the arena never moves and never grows.
//   PA-3    initial values depend on (seed, name, index) only: every rank starts from the same bits.
// Why:      docs/design/0004-step-engine.md
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/buffer_pool.hpp"
#include "runtime/base/digest.hpp"
#include "runtime/train/model.hpp"

namespace troupe {

// What lies where in an arena; enough to write a checkpoint, to check one, and to read one by name.
struct arena_layout {
  std::vector<parameter_spec> parameters; // in declared order
  std::vector<std::string> slots;         // optimizer slots, in arena order: "momentum", ...
  std::size_t part_elements{0};           // parameters with their padding; also the size of each slot

  [[nodiscard]] std::size_t elements() const { return part_elements * (1 + slots.size()); }
  [[nodiscard]] std::size_t bytes() const { return elements() * sizeof(float); }
  // 0: the parameters, 1: the first slot, ...; in elements.
  [[nodiscard]] std::size_t part_offset(std::size_t part) const { return part * part_elements; }
  // "w1 [784,256] @0; b1 [256] @200704; | momentum": what the fingerprint is taken of.
  [[nodiscard]] std::string text() const;
  // Digest of `text()`: two programs whose arenas mean the same thing have the same one.
  [[nodiscard]] std::string fingerprint() const;
};

// Digest over all parameters of an arena's `part`, in declared order, little-endian, without padding.
void add_part(digest_builder& digest, const arena_layout& layout, std::span<const float> arena,
              std::size_t part);
[[nodiscard]] std::string weights_digest(const arena_layout& layout, std::span<const float> arena);

class parameter_store final : public model_context, public parameter_view {
public:
  explicit parameter_store(std::uint64_t seed);

  parameter declare(std::string name, std::vector<std::size_t> shape, initializer initial) override;
  [[nodiscard]] std::uint64_t seed() const override { return seed_; }
  [[nodiscard]] initializer uniform(std::string_view name, float bound) const override;

  // Ends declaring: allocates and touches the arena, writes initial values; slots start at zero.
  void freeze(std::span<const std::string_view> slot_names);
  // Back to the state after `freeze`: what a job without a checkpoint starts from.
  void initialise();

  [[nodiscard]] std::span<const float> values(parameter p) const override;
  [[nodiscard]] const arena_layout& layout() const { return layout_; }
  [[nodiscard]] std::span<float> arena() const { return arena_; }
  [[nodiscard]] std::span<std::byte> bytes() const { return std::as_writable_bytes(arena_); }
  [[nodiscard]] std::span<float> parameters() const { return arena_.first(layout_.part_elements); }
  [[nodiscard]] std::span<float> slot(std::size_t index) const;
  [[nodiscard]] std::string weights_digest() const { return troupe::weights_digest(layout_, arena_); }

private:
  std::uint64_t seed_;
  arena_layout layout_;
  std::vector<initializer> initial_;
  touched_memory memory_;
  std::span<float> arena_;
};

} // namespace troupe
