#include "runtime/sim/sim_network.hpp"

#include <algorithm>
#include <cstring>
#include <vector>

#include "runtime/base/limits.hpp"

namespace troupe {

// --- transport ------------------------------------------------------------------------------------------

class sim_transport final : public transport {
public:
  sim_transport(sim_network& network, sim_process& owner, incarnation_id self)
      : network_{network}
      , owner_{owner}
      , self_{self} {
    network_.transports_[self] = this;
    network_.pids_[self] = owner.pid();
    network_.world_.on_end(owner.pid(),
                           [&network, self](const process_exit& how) { network.lost(self, how); });
  }
  ~sim_transport() override { network_.transports_.erase(self_); }

  void set_listener(transport_listener* listener) override { listener_ = listener; }
  [[nodiscard]] peer_address local_address() const override {
    peer_address address(sizeof(std::uint64_t) * 2);
    const std::uint64_t words[2]{self_.high(), self_.low()};
    std::memcpy(address.data(), words, sizeof words);
    return address;
  }
  [[nodiscard]] incarnation_id self() const override { return self_; }

  expected<void> connect(incarnation_id peer, const peer_address& address) override {
    if (address.size() != sizeof(std::uint64_t) * 2)
      return error{errc::bad_argument, "not a simulated address"};
    if (closed_.contains(peer)) return error{errc::path_lost, "the peer was closed before"};
    if (!peers_.insert(peer).second) return {};
    network_.deliver(self_, peer, duration{0}, [&net = network_, from = self_, to = peer] {
      if (auto* other = net.find(to)) other->accept(from);
    });
    if (network_.find(peer) == nullptr) notice_loss(peer, "the peer is gone");
    return {};
  }

  expected<void> send(incarnation_id peer, std::span<const std::byte> payload) override {
    if (payload.size() > limits::envelope_bytes_max)
      return error{errc::too_large, "message exceeds its limit"};
    if (!peers_.contains(peer)) return error{errc::path_lost, "no path to the peer"};
    auto copy = std::make_unique<std::vector<std::uint64_t>>((payload.size() + 7) / 8);
    std::memcpy(copy->data(), payload.data(), payload.size());
    ++network_.messages_;
    network_.deliver(
        self_, peer, duration{0},
        [&net = network_, from = self_, to = peer, size = payload.size(), held = std::move(copy)] {
          auto* other = net.find(to);
          if (other == nullptr || !other->peers_.contains(from)) return;
          other->listener_->on_message(from, std::as_bytes(std::span{*held}).subspan(0, size));
        });
    return {};
  }

  void send_bulk(incarnation_id peer, std::uint64_t transfer, std::span<const std::byte> bytes,
                 bulk_done done) override {
    const auto id = next_bulk_++;
    pending_.emplace(id, bulk{peer, std::move(done)});
    if (!peers_.contains(peer)) {
      owner_.loop.post([this, id] { finish(id, error{errc::path_lost, "no path to the peer"}); });
      return;
    }
    const auto wire = duration{static_cast<duration::rep>(static_cast<double>(bytes.size()) * 1e9 /
                                                          network_.settings_.bulk_bytes_per_s)};
    network_.deliver(self_, peer, wire, [&net = network_, from = self_, to = peer, transfer, bytes, id] {
      net.find(to) == nullptr ? void() : net.find(to)->receive(from, transfer, bytes, id);
    });
  }

  void close(incarnation_id peer) override {
    if (peers_.erase(peer) == 0) return;
    closed_.insert(peer);
    fail_pending(peer, "closed");
    network_.deliver(self_, peer, duration{0}, [&net = network_, from = self_, to = peer] {
      if (auto* other = net.find(to)) other->drop(from, {errc::actor_stopped, "the peer said goodbye"});
    });
  }

  void accept(incarnation_id from) {
    if (!closed_.contains(from)) peers_.insert(from);
  }

  void drop(incarnation_id peer, const error& cause) {
    if (peers_.erase(peer) == 0) return;
    closed_.insert(peer);
    fail_pending(peer, cause.text);
    if (listener_ != nullptr) listener_->on_path_lost(peer, cause);
  }

  void notice_loss(incarnation_id peer, std::string cause) {
    const auto delay =
        network_.world_.draw_between(network_.settings_.loss_notice_min, network_.settings_.loss_notice_max);
    network_.world_.schedule(delay, &owner_, [&net = network_, self = self_, peer, text = std::move(cause)] {
      if (auto* me = net.find(self)) me->drop(peer, {errc::path_lost, text});
    });
  }

private:
  friend class sim_network;
  struct bulk {
    incarnation_id peer;
    bulk_done done;
  };

  void receive(incarnation_id from, std::uint64_t transfer, std::span<const std::byte> bytes,
               std::uint64_t id) {
    auto* sender = network_.find(from); // a dead sender's memory is gone: nothing to read
    if (sender == nullptr || !peers_.contains(from) || !sender->pending_.contains(id)) return;
    const auto into = listener_->on_bulk_announced(from, {transfer, bytes.size()});
    const bool taken = into.size() == bytes.size();
    if (taken) {
      std::memcpy(into.data(), bytes.data(), bytes.size());
      listener_->on_bulk_received(from, transfer, {});
    }
    network_.deliver(self_, from, duration{0}, [&net = network_, from, id, taken] {
      auto* back = net.find(from);
      if (back == nullptr) return;
      back->finish(id, taken ? expected<void>{} : error{errc::refused, "the receiver refused the transfer"});
    });
  }

  void finish(std::uint64_t id, expected<void> result) {
    const auto found = pending_.find(id);
    if (found == pending_.end()) return;
    auto done = std::move(found->second.done);
    pending_.erase(found);
    done(std::move(result));
  }

  void fail_pending(incarnation_id peer, const std::string& cause) {
    std::vector<std::uint64_t> ids;
    for (const auto& [id, one] : pending_) {
      if (one.peer == peer) ids.push_back(id);
    }
    for (const auto id : ids)
      finish(id, error{errc::path_lost, cause});
  }

  sim_network& network_;
  sim_process& owner_;
  incarnation_id self_;
  transport_listener* listener_{nullptr};
  std::set<incarnation_id> peers_, closed_;
  std::map<std::uint64_t, bulk> pending_;
  std::uint64_t next_bulk_{1};
};

std::unique_ptr<transport> sim_network::make_transport(sim_process& owner, incarnation_id self) {
  return std::make_unique<sim_transport>(*this, owner, self);
}

void sim_network::deliver(incarnation_id from, incarnation_id to, duration extra, task work) {
  const auto pid = pids_.find(to);
  if (pid == pids_.end()) return;
  auto* owner = world_.find(pid->second);
  if (owner == nullptr) return;
  auto& last = last_delivery_[{from, to}];
  const auto wanted = world_.now() + extra + world_.draw_between(settings_.delay_min, settings_.delay_max);
  last = std::max(last + duration{1}, wanted); // order of the pair
  world_.schedule(last - world_.now(), owner, std::move(work));
}

sim_transport* sim_network::find(incarnation_id who) {
  const auto found = transports_.find(who);
  return found == transports_.end() ? nullptr : found->second;
}

void sim_network::lost(incarnation_id who, const process_exit& how) {
  for (auto& [id, other] : transports_) {
    if (other->peers_.contains(who)) other->notice_loss(who, how.text());
  }
}

// --- rendezvous -----------------------------------------------------------------------------------------

class sim_rendezvous_server final : public rendezvous_server {
public:
  sim_rendezvous_server(sim_network& network, sim_process& owner, std::string endpoint)
      : network_{network}
      , owner_{owner}
      , endpoint_{std::move(endpoint)} {}
  ~sim_rendezvous_server() override { stop(); }
  expected<void> start(admit decide) override {
    if (!network_.servers_.emplace(endpoint_, this).second) {
      return error{errc::bad_argument, endpoint_ + ": address in use"};
    }
    decide_ = std::move(decide);
    return {};
  }
  [[nodiscard]] std::string endpoint() const override { return endpoint_; }
  void stop() override {
    const auto found = network_.servers_.find(endpoint_);
    if (found != network_.servers_.end() && found->second == this) network_.servers_.erase(found);
  }

private:
  friend class sim_rendezvous_client;
  sim_network& network_;
  sim_process& owner_;
  std::string endpoint_;
  admit decide_;
};

class sim_rendezvous_client final : public rendezvous_client {
public:
  sim_rendezvous_client(sim_network& network, sim_process& owner)
      : network_{network}
      , owner_{owner} {}
  void join(const std::string& endpoint, const join_offer& offer, duration deadline, joined done) override {
    auto request = std::make_shared<pending>(pending{endpoint, offer, std::move(done)});
    ask(request, network_.world_.now() + deadline);
  }

private:
  struct pending {
    std::string endpoint;
    join_offer offer;
    joined done;
  };

  [[nodiscard]] duration delay() {
    return network_.world_.draw_between(network_.settings_.delay_min, network_.settings_.delay_max);
  }

  void ask(const std::shared_ptr<pending>& request, time_point until) {
    const auto server = network_.servers_.find(request->endpoint);
    if (server != network_.servers_.end()) {
      network_.world_.schedule(
          delay(), &server->second->owner_, [this, request, pid = owner_.pid(), &net = network_] {
            const auto still = net.servers_.find(request->endpoint);
            if (still == net.servers_.end()) return;
            auto answer = std::make_shared<expected<join_answer>>(still->second->decide_(request->offer));
            auto* joiner = net.world_.find(pid);
            if (joiner != nullptr)
              net.world_.schedule(delay(), joiner, [request, answer] { request->done(*answer); });
          });
    } else if (network_.world_.now() >= until) {
      owner_.loop.post([request] {
        request->done(error{errc::timed_out, request->endpoint + ": nobody answered"});
      });
    } else {
      network_.world_.schedule(std::chrono::milliseconds{20}, &owner_,
                               [this, request, until] { ask(request, until); });
    }
  }

  sim_network& network_;
  sim_process& owner_;
};

std::unique_ptr<rendezvous_server> sim_network::make_server(sim_process& owner, std::string endpoint) {
  return std::make_unique<sim_rendezvous_server>(*this, owner, std::move(endpoint));
}
std::unique_ptr<rendezvous_client> sim_network::make_client(sim_process& owner) {
  return std::make_unique<sim_rendezvous_client>(*this, owner);
}

} // namespace troupe
