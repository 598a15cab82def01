// Edge account: how many messages of one edge (a peer's handle to one actor life) have been handled here, and
// when the peer may send more. Private to the remote room.
//
// Owns:     counts; each message under way holds a reference.
// Runs on:  `handled` is called wherever a message is destroyed; all else on the event loop.
// Invariants:
//   EA-1    the peer may have sent what has been handled plus the window, never more.
//   EA-2    credit is granted when half of the window has been handled, so seldom alone.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

#include <caf/mailbox_element.hpp>
#include <caf/message.hpp>
#include <caf/type_erased_tuple.hpp>

#include "runtime/base/task.hpp"
#include "runtime/seams/executor.hpp"

namespace troupe {

class edge_account : public std::enable_shared_from_this<edge_account> {
public:
  using grant = inline_function<void(std::uint64_t allowed), 64>;
  // `give` tells the peer, on the loop; the loop outlives all accounts.
  edge_account(executor& loop, std::uint64_t window, grant give)
      : loop_{loop}
      , window_{window}
      , allowed_{window}
      , give_{std::move(give)} {}

  // A message has arrived. False: the peer had no credit for it.
  [[nodiscard]] bool take() {
    if (taken_ == allowed_) return false;
    ++taken_;
    return true;
  }
  void handled() {
    const auto count = handled_.fetch_add(1, std::memory_order_acq_rel) + 1;
    if (count % half() != 0) return;
    loop_.post([self = shared_from_this()] { self->grant_more(); });
  }
  void close() { give_ = {}; } // the edge is gone

private:
  [[nodiscard]] std::uint64_t half() const { return window_ > 1 ? window_ / 2 : 1; }
  void grant_more() {
    const auto now = handled_.load(std::memory_order_acquire) + window_; // EA-1
    if (now <= allowed_ || !give_) return;
    allowed_ = now;
    give_(now);
  }

  executor& loop_;
  std::uint64_t window_;
  std::uint64_t taken_{0};
  std::uint64_t allowed_;
  grant give_;
  std::atomic<std::uint64_t> handled_{0};
};

// A message from a peer, in an actor's mailbox: counted as handled when it goes.
class edge_element final : public caf::mailbox_element {
public:
  edge_element(caf::strong_actor_ptr from, caf::message_id id, caf::message content,
               std::shared_ptr<edge_account> account)
      : mailbox_element{std::move(from), id, forwarding_stack{}}
      , content_{std::move(content)}
      , account_{std::move(account)} {}
  ~edge_element() override { account_->handled(); }

  caf::type_erased_tuple& content() override {
    if (content_.cvals() == nullptr) return nothing_;
    return content_.vals().unshared();
  }
  [[nodiscard]] const caf::type_erased_tuple& content() const override {
    if (content_.cvals() == nullptr) return nothing_;
    return *content_.cvals();
  }
  caf::message move_content_to_message() override { return std::move(content_); }
  [[nodiscard]] caf::message copy_content_to_message() const override { return content_; }

private:
  caf::message content_;
  std::shared_ptr<edge_account> account_;
  caf::empty_type_erased_tuple nothing_;
};

} // namespace troupe
