#include "runtime/session/lane.hpp"

#include <utility>

#include "runtime/base/invariant.hpp"
#include "runtime/base/planted_bug.hpp"

namespace troupe {

void lane::add(std::span<const std::byte> payload, session_blocks& blocks) {
  invariant(has_room(payload.size(), true), "LN-1: bytes kept never exceed the window and what is owed");
  if (open_ != nullptr && !open_->fits(payload.size())) seal();
  if (open_ == nullptr) open_ = blocks.take(payload.size());
  open_->add(payload);
  kept_bytes_ += batched_bytes(payload.size());
}

void lane::seal() {
  if (open_ == nullptr) return;
  open_->sequence = ++sealed_;
  kept_.push_back(std::move(open_));
}

bool lane::acknowledge(std::uint64_t sequence, session_blocks& blocks) {
  if (sequence > sealed_) return false;
  while (acked_ < sequence) {
    ++acked_;
    auto block = std::move(kept_.front());
    kept_.pop_front();
    if (sent_ > 0) --sent_;
    kept_bytes_ -= block->used - sizeof(session_header);
    blocks.give_back(std::move(block));
  }
  return true;
}

void lane::rewind() {
  if (!TROUPE_PLANTED("session.not_sent_again")) sent_ = 0;
}

bool lane::receive(std::uint64_t sequence) {
  if (sequence != received_ + 1) return false;
  received_ = sequence;
  return true;
}

} // namespace troupe
