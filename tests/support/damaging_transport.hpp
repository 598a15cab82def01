// A transport whose bulk arrives damaged when a test says so: one bit of it is another. And one that is done
// with what it sends only when the test says so, or that fails to send it.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "runtime/seams/transport.hpp"

namespace troupe::test {

class damaging_transport final : public transport, private transport_listener {
public:
  explicit damaging_transport(transport& inner)
      : inner_{inner} {}
  unsigned damages_left{0};                      // of the transfers that arrive next
  std::size_t arrived{0};                        // transfers
  std::function<void()> on_arrival;              // before whoever stands above hears of it
  bool holds{false};                             // what it sends, until `let_go`
  std::function<std::optional<error>()> instead; // of sending a transfer: its end, or nothing
  std::size_t held() const { return held_.size(); }
  void let_go() {
    for (auto& each : std::exchange(held_, {}))
      (*each.first)(std::move(each.second));
  }

  void set_listener(transport_listener* listener) override {
    listener_ = listener;
    inner_.set_listener(listener == nullptr ? nullptr : this);
  }
  [[nodiscard]] peer_address local_address() const override { return inner_.local_address(); }
  [[nodiscard]] incarnation_id self() const override { return inner_.self(); }
  expected<void> connect(incarnation_id peer, const peer_address& address) override {
    return inner_.connect(peer, address);
  }
  expected<void> send(incarnation_id peer, std::span<const std::byte> payload) override {
    return inner_.send(peer, payload);
  }
  void send_bulk(incarnation_id peer, std::uint64_t transfer, std::span<const std::byte> bytes,
                 bulk_done done) override {
    if (auto failed = instead ? instead() : std::nullopt) return done(std::move(*failed));
    inner_.send_bulk(peer, transfer, bytes,
                     [this, kept = std::make_shared<bulk_done>(std::move(done))](expected<void> result) {
                       if (!holds) return (*kept)(std::move(result));
                       held_.emplace_back(kept, std::move(result));
                     });
  }
  void close(incarnation_id peer) override { inner_.close(peer); }
  void drop(incarnation_id peer) override { inner_.drop(peer); }

private:
  void on_message(incarnation_id from, std::span<const std::byte> payload) override {
    listener_->on_message(from, payload);
  }
  std::span<std::byte> on_bulk_announced(incarnation_id from, const bulk_announcement& what) override {
    return places_[{from, what.transfer}] = listener_->on_bulk_announced(from, what);
  }
  void on_bulk_received(incarnation_id from, std::uint64_t transfer, expected<void> result) override {
    const auto place = places_[{from, transfer}];
    if (result) {
      ++arrived;
      if (damages_left > 0) place[place.size() / 3] ^= std::byte{0x10};
      damages_left -= damages_left > 0 ? 1 : 0;
      if (on_arrival) on_arrival();
    }
    listener_->on_bulk_received(from, transfer, std::move(result));
  }
  void on_path_lost(incarnation_id from, const error& cause) override {
    listener_->on_path_lost(from, cause);
  }

  transport& inner_;
  transport_listener* listener_{nullptr};
  std::map<std::pair<incarnation_id, std::uint64_t>, std::span<std::byte>> places_;
  std::vector<std::pair<std::shared_ptr<bulk_done>, expected<void>>> held_;
};

} // namespace troupe::test
