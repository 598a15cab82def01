// Ring groups: the groups of one member by number, and the rooms that their blocks may come to.
//
// Runs on:  the event loop.
// Invariants:
//   RG-1    a room has one block of one peer; its number is not used again while it is open.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>

#include "transports/ring/ring_frame.hpp"

namespace troupe {

class ring_talk;

class ring_groups {
public:
  void add(std::shared_ptr<ring_talk> talk);
  [[nodiscard]] std::uint32_t open_room(ring_talk& talk, std::uint32_t peer);
  void close_room(std::uint32_t number) { rooms_.erase(number); }
  void close_rooms(const ring_talk& talk); // but those that the transport writes into

  // `from`: rank in the generation. False: nothing here is meant.
  void on_here(std::uint32_t from);
  [[nodiscard]] bool on_frame(std::uint32_t from, const ring_frame& frame);
  [[nodiscard]] std::span<std::byte> on_announced(std::uint32_t from, std::uint32_t number,
                                                  std::uint64_t bytes);
  void on_received(std::uint32_t from, std::uint32_t number, bool whole);

private:
  struct room {
    std::shared_ptr<ring_talk> talk;
    std::uint32_t peer{0}; // rank in the group
    bool lent{false};
  };
  [[nodiscard]] room* find(std::uint32_t from, std::uint32_t number);

  std::map<std::uint32_t, std::shared_ptr<ring_talk>> talks_;
  std::map<std::uint32_t, room> rooms_;
  std::uint32_t last_room_{0};
};

} // namespace troupe
