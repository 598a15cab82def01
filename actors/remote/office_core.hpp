// Office core: the post office's tables and rules. Private to the remote room; invariants in post_office.hpp.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <caf/actor.hpp>
#include <caf/actor_addr.hpp>
#include <caf/actor_control_block.hpp>
#include <caf/mailbox_element.hpp>
#include <caf/message.hpp>

#include "actors/remote/codec_table.hpp"
#include "actors/remote/edge_account.hpp"
#include "actors/remote/post_office.hpp"
#include "actors/remote/remote_proxy.hpp"
#include "actors/system/actor_runtime.hpp"
#include "runtime/wire/envelope.hpp"

namespace troupe {

class office_core final : public std::enable_shared_from_this<office_core> {
public:
  office_core(actor_runtime& runtime, transport& network, const codec_table& codecs,
              post_office_settings settings);

  // For the post office (the calls of the same names there).
  expected<void> publish(std::string_view name, const caf::actor& who);
  void withdraw(std::string_view name);
  [[nodiscard]] caf::actor remote(incarnation_id peer, std::string_view name);
  [[nodiscard]] std::uint64_t credit(const caf::actor& handle) const;
  void when_ready(const caf::actor& handle, const caf::actor& who);
  void set_generation(generation_id current) { generation_ = current; }
  void peer_lost(incarnation_id peer, const error& cause);
  void path_lost(incarnation_id peer, const error& cause);
  expected<void> send_control(incarnation_id to, std::uint64_t type, std::span<const std::byte> body,
                              bool urgent = true);
  void set_control_handler(post_office::control_handler handler) { control_ = std::move(handler); }
  void set_path_lost_handler(post_office::path_lost_handler handler) { path_lost_ = std::move(handler); }
  [[nodiscard]] post_office_counters counters() const;
  void close();

  // For the transport's messages (office_inbound.cpp).
  void incoming(incarnation_id from, std::span<const std::byte> payload);
  void not_delivered(std::span<const std::byte> payload, const error& cause); // ours, with a lost path

  // For proxies.
  void outgoing(remote_proxy& to, const caf::mailbox_element& what);
  bool open(remote_proxy& proxy); // tells the peer of this handle, once; false: the handle is dead
  void link_later(remote_proxy& proxy, caf::actor_addr source, bool linked);
  void forget(const remote_proxy& proxy);

private:
  // A peer's handle to an actor of this process.
  struct inbound_channel {
    caf::strong_actor_ptr target; // null: it ended, with `reason`
    wire_reason reason;
    std::shared_ptr<edge_account> account;    // with a target
    caf::scheduled_actor* scheduled{nullptr}; // the target, where it has a mailbox that can be looked into
  };
  struct inbound_link {
    caf::strong_actor_ptr source; // the proxy of the peer's actor
    std::uint64_t channel;        // to whom it is linked
  };
  struct peer_entry {
    std::map<std::string, caf::strong_actor_ptr, std::less<>> named; // our handles by name
    std::map<std::uint64_t, caf::strong_actor_ptr> opened;           // our handles by channel
    std::map<caf::actor_id, caf::weak_actor_ptr> returns;            // our handles to actors that wrote to us
    std::map<std::uint64_t, inbound_channel> inbound;
    std::vector<inbound_link> links;
    std::size_t requests{0};
  };
  struct request {
    caf::strong_actor_ptr requester;
    caf::strong_actor_ptr proxy;
    caf::message_id answer_id;
    time_point deadline;
  };
  struct published {
    caf::strong_actor_ptr actor; // null: it ended, with `reason`
    wire_reason reason;
  };

  // Outbound (office_core.cpp).
  [[nodiscard]] static remote_proxy*
  proxy_behind(const caf::actor& handle); // nullptr: an actor of this process
  caf::strong_actor_ptr make_proxy(remote_place place);
  caf::strong_actor_ptr return_proxy(incarnation_id peer, caf::actor_id id);
  envelope stamped(envelope_kind kind) const;
  expected<void> carry(incarnation_id to, envelope_kind kind, std::span<const std::byte> bytes, bool urgent);
  expected<void> send(incarnation_id to, const envelope& what, bool urgent = true); // of control messages
  void send_content(remote_proxy& to, const caf::mailbox_element& what);
  void send_answer(remote_proxy& to, const caf::mailbox_element& what);
  void send_exit(remote_proxy& to, const caf::mailbox_element& what);
  void send_undelivered(remote_proxy& to, const undelivered& what);
  void send_link(remote_proxy& proxy, const caf::actor_addr& source, bool linked);
  void send_failure(incarnation_id to, std::uint64_t correlation, const error& cause);
  std::uint64_t exported(const caf::strong_actor_ptr& sender); // its id on the wire; 0: none
  void exported_ended(caf::actor_id id);
  void name_ended(const std::string& name, caf::actor_id id, const caf::error& reason);

  // Ends (office_ends.cpp).
  void kill(remote_proxy& proxy, const caf::error& reason);
  static void tell_waiting(remote_proxy& proxy);
  void fail_peer(incarnation_id peer, const error& cause);
  std::uint64_t begin_request(remote_proxy& to, const caf::mailbox_element& what);
  void complete(std::uint64_t correlation, caf::message answer);
  void fail_requests_of(const remote_proxy* proxy, const error& cause);
  void drop_requests_by(caf::actor_id requester);
  void arm_deadline();
  void fail_overdue();

  // Inbound (office_inbound.cpp).
  bool acceptable(incarnation_id from, const envelope& what);
  void on_content(incarnation_id from, const envelope& what);
  void on_answer(const envelope& what);
  void on_undelivered(const envelope& what);
  void on_open(incarnation_id from, const envelope& what);
  void on_close(incarnation_id from, std::uint64_t channel);
  void on_down(incarnation_id from, const envelope& what);
  void on_link(incarnation_id from, const envelope& what);
  void on_exit(incarnation_id from, const envelope& what);
  void on_credit(incarnation_id from, const envelope& what);
  std::shared_ptr<edge_account> new_account(incarnation_id peer, std::uint64_t channel);
  published resolve(const envelope& open) const;
  void bounce(incarnation_id to, const envelope& what, const error& cause);
  void target_ended(incarnation_id peer, std::uint64_t channel, const caf::error& reason);
  [[nodiscard]] bool has_room(caf::scheduled_actor* target) const;

  actor_runtime& runtime_;
  transport& network_;
  const codec_table& codecs_;
  post_office_settings settings_;
  generation_id generation_;
  post_office::control_handler control_;
  post_office::path_lost_handler path_lost_;
  post_office_counters counters_;

  std::map<incarnation_id, peer_entry> peers_;
  std::map<std::string, published, std::less<>> names_;
  std::deque<std::string> ended_names_; // oldest first; bounds what `names_` remembers of the dead
  std::map<caf::actor_id, caf::weak_actor_ptr> exports_;
  std::map<std::uint64_t, request> requests_; // by correlation, so by deadline
  std::set<incarnation_id> lost_;
  std::deque<incarnation_id> lost_order_;
  std::uint64_t last_channel_{0};
  std::uint64_t last_correlation_{0};
  timer_id deadline_timer_{0};

  std::vector<std::uint64_t> body_room_;     // one message's body
  std::vector<std::uint64_t> envelope_room_; // one envelope
};

} // namespace troupe
