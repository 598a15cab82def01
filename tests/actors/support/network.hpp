// Test network: the transport seam between the processes of one driver. Ordered, reliable until cut.
#pragma once

#include <cstring>
#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "runtime/base/limits.hpp"
#include "runtime/seams/executor.hpp"
#include "runtime/seams/transport.hpp"

namespace troupe::test {

class network {
public:
  class endpoint final : public transport {
  public:
    endpoint(network& net, incarnation_id self, executor& loop)
        : net_{net}
        , self_{self}
        , loop_{loop} {}
    void set_listener(transport_listener* listener) override { listener_ = listener; }
    [[nodiscard]] peer_address local_address() const override { return {}; }
    [[nodiscard]] incarnation_id self() const override { return self_; }
    expected<void> connect(incarnation_id, const peer_address&) override { return {}; }
    expected<void> send(incarnation_id peer, std::span<const std::byte> payload) override {
      if (full) return error{errc::no_credit, "queue full"};
      return net_.carry(self_, peer, payload);
    }
    void send_bulk(incarnation_id peer, std::uint64_t transfer, std::span<const std::byte> bytes,
                   bulk_done done) override {
      auto* to = net_.find(peer);
      if (to == nullptr || to->listener_ == nullptr) return done(error{errc::path_lost, "no path"});
      const auto room = to->listener_->on_bulk_announced(self_, {transfer, bytes.size()});
      if (room.size() != bytes.size()) return done(error{errc::no_credit, "refused"});
      std::memcpy(room.data(), bytes.data(), bytes.size());
      to->listener_->on_bulk_received(self_, transfer, {});
      done({});
    }
    void close(incarnation_id) override {}
    void drop(incarnation_id) override {}
    void deliver(incarnation_id from, std::vector<std::uint64_t> words) {
      loop_.post([this, from, words = std::move(words), link = std::weak_ptr{life_}] {
        if (link.lock() && listener_ != nullptr && !net_.cut_off(from, self_))
          listener_->on_message(from, std::as_bytes(std::span{words}));
      });
    }
    void lose(incarnation_id peer, const error& cause) {
      loop_.post([this, peer, code = cause.code, link = std::weak_ptr{life_}] {
        if (link.lock() && listener_ != nullptr) listener_->on_path_lost(peer, {code, "path lost"});
      });
    }
    bool full{false};

  private:
    network& net_;
    incarnation_id self_;
    executor& loop_;
    transport_listener* listener_{nullptr};
    std::shared_ptr<int> life_{std::make_shared<int>(0)};
  };

  std::unique_ptr<endpoint> join(incarnation_id id, executor& loop) {
    auto result = std::make_unique<endpoint>(*this, id, loop);
    members_[id] = result.get();
    return result;
  }
  void leave(incarnation_id id) { members_.erase(id); }
  // Nothing passes between the two any more; `told` learns of it.
  void cut(incarnation_id told, incarnation_id other) {
    cuts_.insert({std::min(told, other), std::max(told, other)});
    if (auto* member = find(told)) member->lose(other, {errc::path_lost, "cut"});
  }
  void mend(incarnation_id a, incarnation_id b) { cuts_.erase({std::min(a, b), std::max(a, b)}); }
  [[nodiscard]] bool cut_off(incarnation_id a, incarnation_id b) const {
    return cuts_.contains({std::min(a, b), std::max(a, b)});
  }
  [[nodiscard]] endpoint* find(incarnation_id id) {
    const auto place = members_.find(id);
    return place != members_.end() ? place->second : nullptr;
  }
  expected<void> carry(incarnation_id from, incarnation_id to, std::span<const std::byte> payload) {
    if (payload.size() > limits::envelope_bytes_max) return error{errc::too_large, "too large"};
    auto* member = find(to);
    if (member == nullptr || cut_off(from, to)) return error{errc::path_lost, "no path to " + to_string(to)};
    std::vector<std::uint64_t> words((payload.size() + 7) / 8);
    std::memcpy(words.data(), payload.data(), payload.size());
    ++carried;
    member->deliver(from, std::move(words));
    return {};
  }
  std::size_t carried{0};

private:
  std::map<incarnation_id, endpoint*> members_;
  std::set<std::pair<incarnation_id, incarnation_id>> cuts_;
};

} // namespace troupe::test
