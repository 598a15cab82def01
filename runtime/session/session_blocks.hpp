// Session blocks: the memory of batches, from their first message until the peer has received them.
//
// Owns:     blocks of the common size, reused; larger ones for larger messages, given back to the heap.
// Invariants:
//   SB-1    after the first burst of its kind, batches of small messages allocate nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "runtime/session/session_frame.hpp"

namespace troupe {

// One batch: a session_header, then its messages.
struct session_block {
  std::unique_ptr<std::uint64_t[]> words;
  std::size_t capacity{0}; // bytes
  std::size_t used{0};     // bytes, header included
  std::uint16_t count{0};
  std::uint64_t sequence{0}; // once sealed

  [[nodiscard]] std::byte* data() const { return reinterpret_cast<std::byte*>(words.get()); }
  [[nodiscard]] std::span<const std::byte> bytes() const { return {data(), used}; }
  [[nodiscard]] bool fits(std::size_t payload) const { return used + batched_bytes(payload) <= capacity; }
  void add(std::span<const std::byte> payload);
};
using block_ptr = std::unique_ptr<session_block>;

class session_blocks {
public:
  [[nodiscard]] block_ptr take(std::size_t payload); // empty, with room for one such message at least
  void give_back(block_ptr block);

private:
  std::vector<block_ptr> spare_;
};

} // namespace troupe
