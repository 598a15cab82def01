#include "transports/ucx/send_pool.hpp"

#include "runtime/base/invariant.hpp"
#include "transports/ucx/frame.hpp"
#include "transports/ucx/limits.hpp"

namespace troupe {

// An ordinary envelope, a small batch of them, and the largest one that may be sent.
const std::array<std::size_t, send_pool::size_classes> send_pool::class_bytes{
    1024, 16 * 1024, sizeof(frame_header) + limits::payload_bytes_max};

send_pool::send_pool(std::size_t bytes_max)
    : bytes_max_{bytes_max} {}

send_slot* send_pool::try_take(std::size_t bytes, bool beyond_bound) {
  std::size_t chosen = 0;
  while (chosen < size_classes && class_bytes[chosen] < bytes)
    ++chosen;
  invariant(chosen < size_classes, "a frame fits the largest send slot");
  send_slot* slot = free_[chosen];
  if (slot != nullptr) {
    free_[chosen] = slot->next;
  } else {
    const auto size = class_bytes[chosen];
    if (allocated_ + size > bytes_max_ && !beyond_bound) return nullptr;
    auto fresh = std::make_unique<send_slot>();
    fresh->own = std::make_unique<std::byte[]>(size);
    fresh->memory = {fresh->own.get(), size};
    fresh->size_class = chosen;
    allocated_ += size;
    slot = all_.emplace_back(std::move(fresh)).get();
  }
  slot->bytes = bytes;
  slot->next = nullptr;
  ++out_;
  return slot;
}

void send_pool::give_back(send_slot* slot) noexcept {
  invariant(out_ > 0, "a send slot is given back once");
  slot->owner = nullptr;
  slot->next = free_[slot->size_class];
  free_[slot->size_class] = slot;
  --out_;
}

} // namespace troupe
