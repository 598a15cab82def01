// Faulty transport: a transport whose messages wait, or whose path to one peer breaks, as the switches say.
//
// Flow:     post office -> [faulty transport] -> the transport, and back
// Owns:     what is held back in each direction; a bulk transfer that arrives meanwhile, until it may pass.
// Runs on:  the event loop.
// Fails:    more held than the limit: outwards errc::no_credit, inwards the path is lost, never in silence.
// Invariants: those of the transport seam (TR-1 to TR-5), and
//   FY-1    while nothing is held and no switch is on, everything passes at once.
//   FY-2    what a cut holds back arrives after it, in order, as over a connection that sends again.
//   FY-3    after a path was lost, nothing is sent to that peer before the loss has been told: it would be
//           the first thing on a path that the caller does not know of.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "runtime/faults/held_queue.hpp"
#include "runtime/seams/transport.hpp"

namespace troupe {

class faulty_transport final : public transport, private transport_listener {
public:
  // `fragile`: the peer whose path breaks when a path error strikes.
  faulty_transport(transport& inner, clock_seam& clock, fault_switches& switches, incarnation_id fragile);
  ~faulty_transport() override;

  void set_listener(transport_listener* listener) override;
  [[nodiscard]] peer_address local_address() const override { return inner_.local_address(); }
  [[nodiscard]] incarnation_id self() const override { return inner_.self(); }
  expected<void> connect(incarnation_id peer, const peer_address& address) override;
  expected<void> send(incarnation_id peer, std::span<const std::byte> payload) override;
  void send_bulk(incarnation_id peer, std::uint64_t transfer, std::span<const std::byte> bytes,
                 bulk_done done) override;
  void close(incarnation_id peer) override;
  void drop(incarnation_id peer) override;

private:
  using transfer_key = std::pair<incarnation_id, std::uint64_t>;
  struct landing {
    std::vector<std::byte> memory; // where it arrives
    std::span<std::byte> into;     // and where it shall be; empty: not said yet, or refused
  };

  void on_message(incarnation_id from, std::span<const std::byte> payload) override;
  std::span<std::byte> on_bulk_announced(incarnation_id from, const bulk_announcement& what) override;
  void on_bulk_received(incarnation_id from, std::uint64_t transfer, expected<void> result) override;
  void on_path_lost(incarnation_id from, const error& cause) override;

  void hold_inward(incarnation_id from, std::size_t bytes, held_queue::carried what);
  void hand_over(incarnation_id from, std::uint64_t transfer, const expected<void>& result);
  void forget(incarnation_id peer);
  void break_path(incarnation_id peer, const error& cause);
  void tell_loss_later(incarnation_id peer, const error& cause);

  transport& inner_;
  fault_switches& switches_;
  incarnation_id fragile_;
  transport_listener* listener_{nullptr};
  held_queue inward_, outward_;
  std::multiset<incarnation_id> untold_;   // losses held back (FY-3)
  std::map<transfer_key, landing> landed_; // transfers whose announcement was held back
};

} // namespace troupe
