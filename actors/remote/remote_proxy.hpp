// Proxy: the CAF handle of an actor in another process. Private to the remote room.
//
// Owns:     nothing but its place; what it is sent goes to the office, at once.
// Runs on:  the event loop.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <caf/actor_proxy.hpp>

#include "runtime/base/error.hpp"
#include "runtime/base/ids.hpp"

namespace troupe {

class office_core;

// Where the actor lives: published under `name`, or known by the id it sent from.
struct remote_place {
  incarnation_id peer;
  std::string name;
  caf::actor_id id{caf::invalid_actor_id};
};

class remote_proxy final : public caf::actor_proxy {
public:
  remote_proxy(caf::actor_config& config, std::weak_ptr<office_core> office, remote_place place);

  using caf::actor_proxy::enqueue;
  void enqueue(caf::mailbox_element_ptr what, caf::execution_unit* host) override;
  void kill_proxy(caf::execution_unit* host, caf::error reason) override;
  void attach(caf::attachable_ptr observer) override;
  // CAF holds the locks of both actors during these two.
  bool add_backlink(caf::abstract_actor* other) override;
  bool remove_backlink(caf::abstract_actor* other) override;
  void on_destroy() override;
  [[nodiscard]] const char* name() const override { return "remote"; }

  [[nodiscard]] const remote_place& place() const { return place_; }
  [[nodiscard]] std::uint64_t channel() const { return channel_; } // 0: not opened
  void set_channel(std::uint64_t channel) { channel_ = channel; }
  // Credit: what may still be sent on this edge (PO-7).
  [[nodiscard]] std::uint64_t credit(std::uint64_t window) const { return window + granted_ - sent_; }
  void note_sent() { ++sent_; }
  void take_back() { --sent_; } // it was not sent after all
  void allow(std::uint64_t total, std::uint64_t window) {
    if (total > window + granted_) granted_ = total - window;
  }
  [[nodiscard]] std::vector<caf::strong_actor_ptr>& waiting() { return waiting_; } // for credit
  [[nodiscard]] bool dead() const { return dead_; }
  [[nodiscard]] const error& cause() const { return cause_; } // of its death

private:
  std::weak_ptr<office_core> office_;
  remote_place place_;
  std::uint64_t channel_{0};
  std::uint64_t sent_{0};
  std::uint64_t granted_{0}; // beyond the first window
  std::vector<caf::strong_actor_ptr> waiting_;
  bool dead_{false};
  error cause_;
};

// How a caf::error travels: an exit status and a text.
struct wire_reason {
  std::uint16_t status{0};
  std::string text;
};
[[nodiscard]] wire_reason to_wire(const caf::error& reason);
[[nodiscard]] caf::error from_wire(std::uint16_t status, std::string_view text);

// Sends what could not be sent back to where it came from: an error to a requester, `undelivered` to others.
void return_to_sender(const caf::mailbox_element& what, const error& cause, std::uint64_t type);

} // namespace troupe
