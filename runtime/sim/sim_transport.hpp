// Simulated transport: one process's end of the simulated network. Private to this room.
#pragma once

#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "runtime/sim/sim_network.hpp"

namespace troupe {

class sim_transport final : public transport {
public:
  sim_transport(sim_network& network, sim_process& owner, incarnation_id self);
  ~sim_transport() override;

  void set_listener(transport_listener* listener) override { listener_ = listener; }
  [[nodiscard]] peer_address local_address() const override;
  [[nodiscard]] incarnation_id self() const override { return self_; }
  expected<void> connect(incarnation_id peer, const peer_address& address) override;
  expected<void> send(incarnation_id peer, std::span<const std::byte> payload) override;
  void send_bulk(incarnation_id peer, std::uint64_t transfer, std::span<const std::byte> bytes,
                 bulk_done done) override;
  void close(incarnation_id peer) override;
  void drop(incarnation_id peer) override;

  [[nodiscard]] bool knows(incarnation_id peer) const { return peers_.contains(peer); }
  [[nodiscard]] bool sends_bulk() const { return !outgoing_.empty(); }
  // The peer's process has ended: the path is lost after a while.
  void notice_loss(incarnation_id peer, errc code, std::string cause);

private:
  struct path {
    std::uint64_t number{0};  // of this end; a later path has a higher one
    std::uint64_t theirs{0};  // the other end's; 0: not heard of yet
    std::size_t in_flight{0}; // bytes
  };
  struct outgoing {
    incarnation_id to;
    std::uint64_t transfer{0};
    std::span<const std::byte> bytes;
    bulk_done done;
  };
  struct incoming {
    std::uint64_t transfer{0};
    std::span<std::byte> into;
  };
  using bulk_key = std::pair<incarnation_id, std::uint64_t>; // sender, its number of the transfer

  // `answers`: the peer's path that made us open this one; 0: we wanted it.
  void open_path(incarnation_id peer, std::uint64_t answers);
  void accept(incarnation_id from, std::uint64_t number, std::uint64_t answers);
  void lose(incarnation_id peer, const error& cause);
  void notice(incarnation_id peer, std::uint64_t number, const error& cause);
  void receive(incarnation_id from, std::uint64_t number, std::span<const std::byte> payload);
  void sent(incarnation_id to, std::uint64_t number, std::size_t bytes);
  void announced(incarnation_id from, std::uint64_t number, std::uint64_t id);
  void arrived(incarnation_id from, std::uint64_t id);
  void answer_bulk(incarnation_id sender, std::uint64_t id, expected<void> result);
  void finish(std::uint64_t id, expected<void> result);
  struct ended_path {
    incarnation_id peer;
    std::vector<std::uint64_t> sends;
    std::vector<incoming> receipts;
    error cause;
  };
  void fail_transfers(incarnation_id peer, const error& cause);
  void settle(const ended_path& what);

  sim_network& network_;
  sim_process& owner_;
  incarnation_id self_;
  transport_listener* listener_{nullptr};
  std::map<incarnation_id, path> peers_;
  std::set<incarnation_id> closed_; // with a goodbye
  std::uint64_t last_path_{0};
  std::map<std::uint64_t, outgoing> outgoing_;
  std::map<bulk_key, incoming> incoming_;
  std::uint64_t next_bulk_{1};
};

} // namespace troupe
