// Sums channel: the share of a process's network that its collective sends through.
//
// Flow:     collective -> [sums channel] -> post office, bulk channel -> transport, and back
// Owns:     nothing; office, router and network outlive it.
// Runs on:  the event loop.
// Fails:    as the transport does.
// Invariants: those of the transport seam (TR-1 to TR-4), and
//   UC-1    it ends no path: everything else that the process says to that peer goes the same way.
//   UC-2    without a listener nothing comes in: messages are dropped, transfers refused.
#pragma once

#include <array>
#include <set>

#include "actors/remote/bulk_router.hpp"
#include "actors/remote/post_office.hpp"
#include "runtime/seams/transport.hpp"
#include "runtime/wire/codec.hpp"

namespace troupe {

class sums_channel final : public transport, private bulk_listener {
public:
  sums_channel(post_office& office, bulk_router& router, transport& network)
      : office_{office}
      , router_{router}
      , network_{network} {}

  // Of the process's control handler, which hears all types.
  static constexpr std::uint64_t type = wire_type_of("troupe.sums");
  void hear(incarnation_id from, std::span<const std::byte> payload) {
    if (listener_ == nullptr) return;
    peers_.insert(from);
    listener_->on_message(from, payload);
  }
  void path_lost(incarnation_id peer, const error& cause) {
    peers_.erase(peer);
    if (listener_ != nullptr) listener_->on_path_lost(peer, cause);
  }

  // With whom the collective has spoken, and whose path has not ended.
  [[nodiscard]] const std::set<incarnation_id>& peers() const { return peers_; }
  // "Are you there", and the answer: for whoever waits longer than a sum takes. Of types of their own.
  static constexpr std::uint64_t question = wire_type_of("troupe.sums_question");
  static constexpr std::uint64_t answer = wire_type_of("troupe.sums_answer");
  expected<void> ask(incarnation_id peer) { return office_.send_control(peer, question, word); }
  expected<void> answer_to(incarnation_id peer) { return office_.send_control(peer, answer, word); }

  void set_listener(transport_listener* listener) override {
    listener_ = listener;
    router_.serve(bulk_channel::sums, listener != nullptr ? this : nullptr);
  }
  [[nodiscard]] peer_address local_address() const override { return network_.local_address(); }
  [[nodiscard]] incarnation_id self() const override { return network_.self(); }
  expected<void> connect(incarnation_id peer, const peer_address& address) override {
    auto path = network_.connect(peer, address);
    if (path) peers_.insert(peer);
    return path;
  }
  // All of it is owed: the collective bounds it, and has no use for a part.
  expected<void> send(incarnation_id peer, std::span<const std::byte> payload) override {
    return office_.send_owed_control(peer, type, payload);
  }
  void send_bulk(incarnation_id peer, std::uint64_t transfer, std::span<const std::byte> bytes,
                 bulk_done done) override {
    office_.send_bulk(peer, bulk_router::number(bulk_channel::sums, transfer), bytes, std::move(done));
  }
  void close(incarnation_id) override {} // UC-1
  void drop(incarnation_id) override {}  // UC-1

private:
  std::span<std::byte> on_bulk_announced(incarnation_id from, const bulk_announcement& what) override {
    return listener_->on_bulk_announced(from, what);
  }
  void on_bulk_received(incarnation_id from, std::uint64_t transfer, expected<void> result) override {
    listener_->on_bulk_received(from, transfer, std::move(result));
  }

  post_office& office_;
  bulk_router& router_;
  transport& network_;
  static constexpr std::array<std::byte, 8> word{}; // what there is nothing to say in
  transport_listener* listener_{nullptr};
  std::set<incarnation_id> peers_;
};

} // namespace troupe
