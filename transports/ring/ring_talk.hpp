// Ring talk: how one member of a group exchanges with the others, a round at a time.
//
// A round: show the others what is called and where its block may come (a room); hear theirs; then the blocks
// move, small ones as messages, others as transfers. Before the first round's blocks of a call move, all that
// was shown is judged, by everyone alike.
//
// Flow:     group calls (device) -> [round] -> transport -> settled (device)
// Owns:     the boxes that blocks leave from and arrive in [world x part_bytes each]: the transport reads and
//           writes them, so they live as long as the member does (RM-4).
// Runs on:  the event loop; the round and the boxes are the device's between two rounds.
// Fails:    bad_argument: calls that do not fit (group_call.hpp); aborted. Who cannot be reached is silence.
// Invariants: GR-3, GR-5, and
//   RT-1    nobody is more than one round ahead of another in what they do together: of each peer, two things
//           it has shown are remembered, and no more.
//   RT-2    a block is sent only to a room that its receiver has opened for it, and fills it exactly.
//   RT-3    a round is over when all have been heard, all that was to come has come, and the transport has
//           let go of all that left.
// Why:      docs/design/0042-rank-groups-across-hosts.md
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "runtime/policy/group_call.hpp"
#include "transports/ring/ring_frame.hpp"
#include "transports/ring/ring_memory.hpp"

namespace troupe {

class ring_member;

struct group_round {
  bool pairwise{false};
  bool opens{true};      // the first one of its call
  std::uint32_t peer{0}; // of a pairwise one
  call_signature shown;
  std::vector<std::span<const std::byte>> out; // by rank; empty: nothing
  std::vector<std::span<std::byte>> in;
};

class ring_talk final : public std::enable_shared_from_this<ring_talk> {
public:
  // `members`: ranks of the generation, ascending; this member is the one at `rank`.
  ring_talk(ring_member& owner, std::uint32_t group, std::vector<std::uint32_t> members, std::uint32_t rank,
            std::size_t part_bytes);

  // --- the device's side ---
  [[nodiscard]] std::uint32_t group() const { return group_; }
  [[nodiscard]] std::uint32_t rank() const { return rank_; }
  [[nodiscard]] std::uint32_t world() const { return static_cast<std::uint32_t>(peers_.size()); }
  [[nodiscard]] const std::vector<std::uint32_t>& members() const { return members_; }
  [[nodiscard]] std::size_t part_bytes() const { return part_bytes_; }
  [[nodiscard]] std::byte* outbox() const { return reinterpret_cast<std::byte*>(outbox_.data()); }
  [[nodiscard]] std::byte* inbox() const { return reinterpret_cast<std::byte*>(inbox_.data()); }
  [[nodiscard]] group_round& round() { return round_; }
  // On the loop, then: `settled` runs on the device. Skipped after an abort of the generation.
  void run(std::function<void(expected<void>)> settled);
  void forget() { settled_ = {}; } // nobody waits for the round any more

  // --- the member's side; on the loop; ranks are those of the generation ---
  void on_here(std::uint32_t member);
  void on_show(std::uint32_t member, const ring_frame& frame);
  void on_ended();
  // --- of a room's block ---
  void on_block(std::uint32_t peer, std::span<const std::byte> bytes);
  [[nodiscard]] std::span<std::byte> room_of(std::uint32_t peer, std::uint64_t bytes);
  void on_block_received(std::uint32_t peer);
  [[nodiscard]] bool ended() const { return ended_; }

private:
  struct shown_round {
    std::uint64_t turn{0}; // 0: nothing
    std::uint32_t room{0};
    call_signature call;
  };
  struct peer_state {
    std::uint64_t pair_turns{0};
    shown_round heard[2][2]; // together or the two; odd or even turn
    bool showed{false};      // in this round: told the peer
    bool sent{false};        // its block is on its way
    std::uint32_t room{0};   // where its block may come; 0: nothing is awaited
  };

  void begin();
  [[nodiscard]] bool takes_part(std::uint32_t peer) const;
  [[nodiscard]] std::uint64_t turn_with(std::uint32_t peer, bool pairwise) const;
  [[nodiscard]] const shown_round* heard(std::uint32_t peer, bool pairwise, std::uint64_t turn) const;
  void show(std::uint32_t peer);
  void consider();
  [[nodiscard]] bool all_heard() const;
  // The peer that will never take part: it waits for all while this member waits for it, or the reverse.
  [[nodiscard]] std::optional<std::uint32_t> crossed() const;
  [[nodiscard]] expected<void> judge();
  void send_block(std::uint32_t peer);
  void block_came(std::uint32_t peer);
  void settle(expected<void> result);
  void misfit(const error& why, std::optional<std::uint32_t> partner);
  [[nodiscard]] std::optional<std::uint32_t> position_of(std::uint32_t member) const;

  ring_member& owner_;
  const std::uint32_t group_;
  const std::vector<std::uint32_t> members_;
  const std::uint32_t rank_;
  const std::size_t part_bytes_;
  ring_memory::block outbox_, inbox_;
  group_round round_;
  std::function<void(expected<void>)> settled_;

  bool open_{false}; // a round is under way
  bool ended_{false};
  std::uint64_t turns_{0}; // rounds of all
  std::size_t awaited_{0}; // blocks
  std::size_t unsent_{0};  // blocks that the transport still has, or has not got yet
  std::vector<peer_state> peers_;
};

} // namespace troupe
