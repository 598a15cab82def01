// Bulk router: several users of a process's bulk transfers, told apart by the top bits of their numbers.
//
// Flow:     transport -> post office -> [router] -> the listener of a transfer's channel
// Owns:     nothing; a listener leaves (`serve` with null) before it is destroyed.
// Runs on:  the event loop.
// Invariants:
//   BR-1    a channel has one listener at a time; it sees only its own numbers, as it chose them.
//   BR-2    a transfer for a channel that nobody serves is refused.
#pragma once

#include <array>
#include <cstdint>
#include <utility>

#include "actors/remote/post_office.hpp"
#include "runtime/base/invariant.hpp"

namespace troupe {

// Who uses bulk transfers. A new user gets a new channel; the numbers of the first are what they always were.
enum class bulk_channel : std::uint8_t { state, sums };

class bulk_router final : public bulk_listener {
public:
  static constexpr unsigned number_bits = 56; // of a transfer, for its user
  static constexpr std::size_t channels = 2;

  void serve(bulk_channel which, bulk_listener* who) {
    auto& place = listeners_.at(static_cast<std::size_t>(which));
    invariant(place == nullptr || who == nullptr, "BR-1: a channel has one listener at a time");
    place = who;
  }
  // What goes to `send_bulk`, so that the peer's router finds the channel.
  [[nodiscard]] static std::uint64_t number(bulk_channel which, std::uint64_t transfer) {
    invariant(transfer >> number_bits == 0, "BR-1: a user's numbers leave the channel's bits alone");
    return std::uint64_t{static_cast<std::uint8_t>(which)} << number_bits | transfer;
  }

  std::span<std::byte> on_bulk_announced(incarnation_id from, const bulk_announcement& what) override {
    auto* to = listener_of(what.transfer);
    return to == nullptr ? std::span<std::byte>{}
                         : to->on_bulk_announced(from, {own_number(what.transfer), what.bytes});
  }
  void on_bulk_received(incarnation_id from, std::uint64_t transfer, expected<void> result) override {
    if (auto* to = listener_of(transfer)) to->on_bulk_received(from, own_number(transfer), std::move(result));
  }

private:
  [[nodiscard]] static std::uint64_t own_number(std::uint64_t transfer) {
    return transfer & ((std::uint64_t{1} << number_bits) - 1);
  }
  [[nodiscard]] bulk_listener* listener_of(std::uint64_t transfer) const {
    const auto channel = transfer >> number_bits;
    return channel < channels ? listeners_[channel] : nullptr;
  }
  std::array<bulk_listener*, channels> listeners_{};
};

} // namespace troupe
