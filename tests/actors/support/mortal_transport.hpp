// Mortal transport: the outside of a process that can stand still, or die in silence, inside a living test.
//
// Flow:     office -> [mortal transport] -> the transport under test, and back
// Owns:     that transport; what arrives while the process stands still, in order.
// Runs on:  the event loop of the test.
// Invariants:
//   MT-1    while frozen nothing is handed up; afterwards everything is, in the order in which it came.
//   MT-2    once dead nothing goes out and nothing is handed up: a killed process says no goodbye.
#pragma once

#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "runtime/seams/executor.hpp"
#include "runtime/seams/transport.hpp"

namespace troupe::test {

class mortal_transport final : public transport, private transport_listener {
public:
  explicit mortal_transport(std::unique_ptr<transport> inner)
      : inner_{std::move(inner)} {}
  ~mortal_transport() override {
    if (inner_ != nullptr) inner_->set_listener(nullptr);
  }

  void freeze() { frozen_ = true; }
  void thaw() {
    frozen_ = false;
    while (!held_.empty() && !frozen_) {
      const auto next = std::move(held_.front());
      held_.pop_front();
      next();
    }
  }
  // The transport itself is given away, to be destroyed by whoever knows how its death looks from outside.
  [[nodiscard]] std::unique_ptr<transport> die() {
    held_.clear();
    listener_ = nullptr;
    inner_->set_listener(nullptr);
    return std::move(inner_);
  }

  void set_listener(transport_listener* listener) override {
    listener_ = listener;
    if (inner_ != nullptr) inner_->set_listener(listener == nullptr ? nullptr : this);
  }
  [[nodiscard]] peer_address local_address() const override { return inner_->local_address(); }
  [[nodiscard]] incarnation_id self() const override {
    return inner_ != nullptr ? inner_->self() : incarnation_id{};
  }
  expected<void> connect(incarnation_id peer, const peer_address& address) override {
    return inner_ != nullptr ? inner_->connect(peer, address) : expected<void>{};
  }
  expected<void> send(incarnation_id peer, std::span<const std::byte> payload) override {
    return inner_ != nullptr ? inner_->send(peer, payload) : expected<void>{};
  }
  void send_bulk(incarnation_id peer, std::uint64_t transfer, std::span<const std::byte> bytes,
                 bulk_done done) override {
    if (inner_ != nullptr) inner_->send_bulk(peer, transfer, bytes, std::move(done));
  }
  void close(incarnation_id peer) override {
    if (inner_ != nullptr) inner_->close(peer);
  }
  void drop(incarnation_id peer) override {
    if (inner_ != nullptr) inner_->drop(peer);
  }

private:
  void on_message(incarnation_id from, std::span<const std::byte> payload) override {
    if (!frozen_) return listener_->on_message(from, payload);
    std::vector<std::uint64_t> words((payload.size() + 7) / 8); // aligned
    if (!payload.empty()) std::memcpy(words.data(), payload.data(), payload.size());
    held_.emplace_back([this, from, size = payload.size(), copy = std::move(words)] {
      listener_->on_message(from, std::as_bytes(std::span{copy}).first(size));
    });
  }
  // Whoever stands still lends no memory.
  std::span<std::byte> on_bulk_announced(incarnation_id from, const bulk_announcement& what) override {
    return frozen_ ? std::span<std::byte>{} : listener_->on_bulk_announced(from, what);
  }
  void on_bulk_received(incarnation_id from, std::uint64_t transfer, expected<void> result) override {
    listener_->on_bulk_received(from, transfer, std::move(result));
  }
  void on_path_lost(incarnation_id from, const error& cause) override {
    if (!frozen_) return listener_->on_path_lost(from, cause);
    held_.emplace_back([this, from, cause] { listener_->on_path_lost(from, cause); });
  }

  std::unique_ptr<transport> inner_;
  transport_listener* listener_{nullptr};
  std::deque<std::function<void()>> held_;
  bool frozen_{false};
};

// The turns of such a process: they wait while it stands still, and never come once it is gone.
class gated_executor final : public executor {
public:
  explicit gated_executor(executor& inner)
      : inner_{inner} {}

  void post(task work) override {
    state_->waiting.push_back(std::move(work));
    ask_for_turn();
  }
  void freeze() { state_->frozen = true; }
  void thaw() {
    state_->frozen = false;
    for (auto turns = state_->waiting.size(); turns > 0; --turns)
      ask_for_turn();
  }

private:
  struct state {
    std::deque<task> waiting;
    bool frozen{false};
  };
  void ask_for_turn() {
    inner_.post([link = std::weak_ptr{state_}] {
      const auto self = link.lock();
      if (self == nullptr || self->frozen || self->waiting.empty()) return;
      task work = std::move(self->waiting.front());
      self->waiting.pop_front();
      work();
    });
  }
  executor& inner_;
  std::shared_ptr<state> state_{std::make_shared<state>()};
};

} // namespace troupe::test
