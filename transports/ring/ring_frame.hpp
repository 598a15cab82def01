// Ring frames: the messages between the members of a generation, and the numbers of their transfers.
//
// Flow:     member -> encode -> transport -> decode -> member
// Fails:    what is no frame is nullopt: the receiver drops it.
// Invariants:
//   RF-1    what `decode` accepts has a known word, and a part whole floats; a transfer's number gives back
//           what made it, below 2^56: the bits above belong to whoever shares the transport out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace troupe {

enum class ring_word : std::uint8_t {
  here = 1, // the sender is connected in this generation: it may be sent to
  part,     // values of sum `arrived`: a contribution, a partial sum, or none; `index` says which
  ended,    // the sender has aborted this generation
  // Of group `index`, in round `arrived` (ring_talk.hpp):
  show,        // what the sender calls, and the room that it has for a block
  block,       // for the receiver's room `index`
  group_ended, // its members' calls did not fit
};

struct ring_frame {
  ring_word what{ring_word::here};
  std::uint32_t index{0};
  std::uint64_t generation{0};
  std::uint64_t arrived{0};            // sums that the sender has called for
  std::span<const std::byte> values{}; // of a part: floats; not aligned
};

inline constexpr std::size_t ring_header_bytes = 24;

// Writes the header into `into`, which is at least `ring_header_bytes` long; the values follow it.
void encode_header(const ring_frame& frame, std::span<std::byte> into);
[[nodiscard]] std::optional<ring_frame> decode_ring_frame(std::span<const std::byte> payload);

// A bulk transfer: a piece of a contribution on its way to the slice's owner, or a finished piece; or a
// group's block, whose place is its room.
struct ring_transfer {
  static constexpr std::uint64_t generation_mask = (1U << 20U) - 1;
  static constexpr std::uint64_t sum_mask = (1U << 12U) - 1;
  static constexpr std::uint64_t place_mask = (1U << 22U) - 1;
  std::uint64_t generation{0}; // masked
  std::uint64_t sum{0};        // masked; peers are never more than one sum apart
  bool finished{false};
  std::uint32_t place{0}; // finished: the piece; else piece x contributions of the sender + contribution
  bool group{false};
  bool operator==(const ring_transfer&) const = default;
};
[[nodiscard]] std::uint64_t encode(const ring_transfer& what);
[[nodiscard]] std::optional<ring_transfer> decode_ring_transfer(std::uint64_t number);

} // namespace troupe
