// Group line: what a member of a rank group shows the others, and where they meet, in shared memory.
//
// Owns:     nothing; lines live in the group's area, words in the header, zeroed by the system.
// Invariants:
//   GL-1    what is shown to all is overwritten two calls later: whoever reads it has reached the meeting of
//           the call between.
//   GL-2    what is shown to one peer stays until that peer has seen it: the call ends by the peer's doing.
#pragma once

#include <atomic>
#include <cstdint>

#include "runtime/policy/group_call.hpp"
#include "transports/shm/meeting.hpp"

namespace troupe {

// A rank group's words. In the header: whoever ends the generation must reach them.
struct group_words {
  meeting_words together;
  alignas(64) bell_words pairs; // rung by what a send and its receive tell each other
};

inline void abort_group(group_words& words) noexcept {
  abort_meeting(words.together);
  ring(words.pairs);
}

// A call of all members.
struct common_call {
  call_signature shown;
  std::uint64_t group; // of a split, at rank 0: the new group's number
};

struct alignas(64) group_line {
  common_call common[2]; // by turns (GL-1)
  // A send or receive: `ticket` says whose and which one (pair_ticket) once `pair` is written.
  alignas(64) call_signature pair;
  std::atomic<std::uint64_t> ticket;
  std::atomic<std::uint64_t> given;             // pieces that this member has sent so far
  alignas(64) std::atomic<std::uint64_t> taken; // of these, taken; written by the receiver
};

// Names the `number`-th call (from 1) of two members, for `peer`.
[[nodiscard]] constexpr std::uint64_t pair_ticket(std::uint32_t peer, std::uint64_t number) {
  return static_cast<std::uint64_t>(peer) << 48 | number;
}

} // namespace troupe
