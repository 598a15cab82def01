#include "runtime/session/session_blocks.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "runtime/base/invariant.hpp"
#include "runtime/session/limits.hpp"

namespace troupe {

void session_block::add(std::span<const std::byte> payload) {
  invariant(fits(payload.size()) && count < UINT16_MAX, "a message is added where it fits");
  const message_header header{static_cast<std::uint32_t>(payload.size()), 0};
  auto* at = data() + used;
  std::memcpy(at, &header, sizeof(header));
  if (!payload.empty()) std::memcpy(at + sizeof(header), payload.data(), payload.size());
  const auto takes = batched_bytes(payload.size());
  const auto end = sizeof(header) + payload.size();
  std::memset(at + end, 0, takes - end);
  used += takes;
  ++count;
}

block_ptr session_blocks::take(std::size_t payload) {
  const auto least = sizeof(session_header) + batched_bytes(payload);
  block_ptr block;
  if (least <= limits::session_block_bytes && !spare_.empty()) {
    block = std::move(spare_.back());
    spare_.pop_back();
  } else {
    block = std::make_unique<session_block>();
    block->capacity = std::max(least, limits::session_block_bytes);
    block->words = std::make_unique_for_overwrite<std::uint64_t[]>(block->capacity / sizeof(std::uint64_t));
  }
  block->used = sizeof(session_header);
  block->count = 0;
  block->sequence = 0;
  return block;
}

void session_blocks::give_back(block_ptr block) {
  if (block->capacity == limits::session_block_bytes && spare_.size() < limits::session_spare_blocks_max)
    spare_.push_back(std::move(block));
}

} // namespace troupe
