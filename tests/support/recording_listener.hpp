// A transport listener that keeps what it was told, for tests to look at.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "runtime/seams/transport.hpp"

namespace troupe::test {

class recording_listener final : public transport_listener {
public:
  struct message {
    incarnation_id from;
    std::vector<std::byte> payload;
    bool aligned{false};
  };
  struct bulk {
    incarnation_id from;
    std::uint64_t transfer{0};
    std::vector<std::byte> bytes;
    std::optional<expected<void>> result;
  };
  struct loss {
    incarnation_id who;
    error cause;
  };
  std::vector<message> messages;
  std::map<std::uint64_t, bulk> bulks;
  std::vector<loss> losses;
  std::vector<std::vector<std::byte>> undelivered;
  bool accept_bulk{true};
  std::size_t bulks_announced{0};
  std::size_t handed_up_after_loss{0};
  std::function<void(incarnation_id, std::span<const std::byte>)> then; // after each message

  void on_message(incarnation_id from, std::span<const std::byte> payload) override {
    note(from);
    const auto address = reinterpret_cast<std::uintptr_t>(payload.data());
    messages.push_back({from, {payload.begin(), payload.end()}, address % 8 == 0});
    if (then) then(from, payload);
  }
  std::span<std::byte> on_bulk_announced(incarnation_id from, const bulk_announcement& what) override {
    note(from);
    ++bulks_announced;
    if (!accept_bulk) return {};
    auto& added = bulks[what.transfer];
    added = {from, what.transfer, std::vector<std::byte>(what.bytes), std::nullopt};
    return added.bytes;
  }
  void on_bulk_received(incarnation_id from, std::uint64_t transfer, expected<void> result) override {
    note(from);
    bulks.at(transfer).result = std::move(result);
  }
  void on_path_lost(incarnation_id who, const error& cause) override {
    note(who);
    losses.push_back({who, cause});
  }
  void on_undelivered(incarnation_id, std::span<const std::byte> payload, const error&) override {
    undelivered.emplace_back(payload.begin(), payload.end());
  }
  [[nodiscard]] std::size_t losses_of(incarnation_id who) const {
    std::size_t count = 0;
    for (const auto& lost : losses)
      count += lost.who == who ? 1U : 0U;
    return count;
  }

private:
  void note(incarnation_id from) { handed_up_after_loss += losses_of(from); }
};

} // namespace troupe::test
