// Lane: one ordered stream of messages to a peer, and how far the peer's stream has come. No transport, no
// time.
//
// Outward a message joins the open batch; a sealed batch has a sequence number and is kept until the peer has
// acknowledged it, so it can be sent again over another path. Inward only the next number is taken.
//
// Invariants:
//   LN-1    bytes kept never exceed the window; what is owed may go beyond, by a bound of its own.
//   LN-2    batches are sent in order of their numbers; after `rewind` from the oldest one kept.
//   LN-3    a batch is taken in once, and only the next one: a correct peer never sends another.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>

#include "runtime/session/limits.hpp"
#include "runtime/session/session_blocks.hpp"

namespace troupe {

class lane {
public:
  explicit lane(std::size_t window_bytes)
      : window_bytes_{window_bytes} {}

  // --- outward ---
  [[nodiscard]] bool has_room(std::size_t payload, bool owed = false) const { // LN-1
    return kept_bytes_ + batched_bytes(payload) <=
           window_bytes_ + (owed ? limits::session_owed_bytes_max : 0);
  }
  // To the open batch; one that is full is sealed first. The caller has asked for room.
  void add(std::span<const std::byte> payload, session_blocks& blocks);
  void seal(); // the open batch, if there is one, may be sent
  // The next batch to be sent; nullptr: none.
  [[nodiscard]] session_block* next_unsent() { return sent_ < kept_.size() ? kept_[sent_].get() : nullptr; }
  void note_sent() {
    ++sent_;
    any_sent_ = true;
  }
  void rewind();                                            // a new path: send again what is kept
  [[nodiscard]] bool any_sent() const { return any_sent_; } // over whichever path
  // The peer has received everything up to `sequence`. False: it never was sent, the peer is not in its mind.
  [[nodiscard]] bool acknowledge(std::uint64_t sequence, session_blocks& blocks);
  [[nodiscard]] std::size_t kept_bytes() const { return kept_bytes_; }
  // Every message that is kept, oldest first; then nothing is.
  template <class Visit>
  void give_up(Visit visit) {
    seal();
    auto kept = std::move(kept_);
    kept_.clear();
    kept_bytes_ = 0;
    sent_ = 0;
    for (const auto& block : kept) {
      auto left = block->bytes().subspan(sizeof(session_header));
      while (const auto message = take_message(left))
        visit(*message);
    }
  }

  // --- inward ---
  [[nodiscard]] bool receive(std::uint64_t sequence); // false: not the next one (LN-3)
  [[nodiscard]] std::uint64_t received() const { return received_; }

private:
  std::size_t window_bytes_;
  block_ptr open_;
  std::deque<block_ptr> kept_; // sealed, by number
  std::size_t sent_{0};        // how many of the kept ones have been sent over this path
  std::size_t kept_bytes_{0};  // of messages, the open batch's too
  std::uint64_t sealed_{0};    // number of the newest sealed batch
  std::uint64_t acked_{0};
  bool any_sent_{false};
  std::uint64_t received_{0};
};

} // namespace troupe
