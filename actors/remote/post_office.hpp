// Post office: actors of other processes as ordinary CAF handles.
//
// Flow:     actor -> proxy -> [post office] -> envelope -> transport -> [post office] -> actor
// Owns:     the proxies of this process, the names published here, the requests under way. One per process.
// Runs on:  the event loop; never blocks. Proxies are used from actors, or from the loop.
// Fails:    as `undelivered` messages to senders, as errors to requesters, as down and exit to observers.
//
// A handle stands for one actor life. When that actor ends, or its process is lost, the handle dies with the
// cause: monitors and links fire, requests under way complete with it, later ones at once. Asking for the
// name again gives a handle to the successor.
//
// Invariants:
//   PO-1    messages between two processes arrive in the order sent, at most once, at the life they were sent
//           to.
//   PO-2    every request completes exactly once: answer, typed error, or time-out; at once when the actor
//           asked or its process is gone.
//   PO-3    a message that cannot be delivered, or may not have been, comes back to its sender with the
//           cause.
//   PO-4    what a lost peer still sends, another job, and ended generations are dropped and counted here
//           only.
//   PO-5    requests, channels and mailboxes filled from outside are bounded.
//   PO-6    an observer of a remote actor sees exactly one down (or exit), whichever cause comes first.
//   PO-7    on one edge (a handle to one actor life) no more messages are under way than its window; a sender
//           without credit is told at once (no_credit), and by `when_ready` when there is some again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "runtime/base/error.hpp"
#include "runtime/base/ids.hpp"
#include "runtime/base/task.hpp"
#include "runtime/base/time.hpp"
#include "runtime/seams/transport.hpp"

namespace caf {
class actor;
}

namespace troupe {

class actor_runtime;
class codec_table;
class office_core;

struct post_office_settings {
  job_id job;
  std::size_t requests_max{4096};                     // under way to one peer; more: errc::no_credit
  std::size_t channels_max{4096};                     // actors of this process that one peer may hold
  std::size_t mailbox_messages_max{4096};             // waiting in a mailbox that a peer wants to add to
  std::uint64_t edge_messages_max{1024};              // under way on one edge: sent, and not yet handled
  duration request_timeout{std::chrono::seconds{60}}; // the net under requests sent without a time-out
};

struct post_office_counters {
  std::uint64_t sent{0};
  std::uint64_t received{0};
  std::uint64_t unsent{0};   // the transport refused
  std::uint64_t bounced{0};  // messages from outside that came back to their sender
  std::uint64_t returned{0}; // messages of ours that came back
  // PO-4: dropped.
  std::uint64_t stale_sender{0};
  std::uint64_t stale_generation{0};
  std::uint64_t foreign_job{0};
  std::uint64_t corrupt{0};
  std::uint64_t late{0};   // answers to requests that had ended
  std::size_t requests{0}; // under way now
  std::size_t proxies{0};
};

// Bulk transfers of the process, passed through.
class bulk_listener {
public:
  virtual ~bulk_listener() = default;
  // As transport_listener's calls of the same name.
  virtual std::span<std::byte> on_bulk_announced(incarnation_id from, const bulk_announcement& what) = 0;
  virtual void on_bulk_received(incarnation_id from, std::uint64_t transfer, expected<void> result) = 0;
};

class post_office final : public transport_listener {
public:
  using control_handler =
      inline_function<void(incarnation_id from, std::uint64_t type, std::span<const std::byte> body), 64>;
  using path_lost_handler = inline_function<void(incarnation_id peer, const error& cause), 64>;

  // Becomes the transport's listener. Everything given outlives it; it is destroyed before the runtime.
  post_office(actor_runtime& runtime, transport& network, const codec_table& codecs,
              post_office_settings settings);
  ~post_office() override;
  post_office(const post_office&) = delete;
  post_office& operator=(const post_office&) = delete;

  // The actor is reachable under `name` until it ends or is withdrawn. errc::bad_argument: the name is taken
  // by a living actor, or too long.
  expected<void> publish(std::string_view name, const caf::actor& who);
  void withdraw(std::string_view name);
  // The actor published under `name` by `peer`, which is connected or about to be. Always a handle: where
  // there is no such actor or peer, it dies with the cause at once (or when the peer says so). One handle per
  // name and life. For this very process: the actor itself.
  [[nodiscard]] caf::actor remote(incarnation_id peer, std::string_view name);

  // How many messages may be sent to `handle` now (PO-7); the whole window for an actor of this process.
  [[nodiscard]] std::uint64_t credit(const caf::actor& handle) const;
  // Sends `who` an `edge_ready` once messages may be sent to `handle`: now, or when its actor has handled
  // some of those under way. Once per call.
  void when_ready(const caf::actor& handle, const caf::actor& who);

  // Messages bound to a generation (codec.hpp) carry this one, and are refused when they carry an older one.
  void set_generation(generation_id current);
  // Membership's verdict: all its handles die with `cause`, its requests fail, what it still sends is
  // dropped.
  void peer_lost(incarnation_id peer, const error& cause);

  // Process to process, no actor: heartbeats. No allocation. errc as transport::send.
  expected<void> send_control(incarnation_id to, std::uint64_t type, std::span<const std::byte> body);
  // The same, in one order with what actors send, and as transport::send_owed: the caller bounds it.
  expected<void> send_owed_control(incarnation_id to, std::uint64_t type, std::span<const std::byte> body);
  void set_control_handler(control_handler handler);
  // Suspicion only; the peer's handles have died with `cause` when it is called.
  void set_path_lost_handler(path_lost_handler handler);
  // A path failed and is being opened again; nothing has ended.
  void set_path_interrupted_handler(path_lost_handler handler);
  void set_bulk_handler(bulk_listener* listener); // not owned
  void send_bulk(incarnation_id peer, std::uint64_t transfer, std::span<const std::byte> bytes,
                 bulk_done done);

  [[nodiscard]] post_office_counters counters() const;

  // The transport's side.
  void on_message(incarnation_id from, std::span<const std::byte> payload) override;
  std::span<std::byte> on_bulk_announced(incarnation_id from, const bulk_announcement& what) override;
  void on_bulk_received(incarnation_id from, std::uint64_t transfer, expected<void> result) override;
  void on_path_lost(incarnation_id from, const error& cause) override;
  void on_path_interrupted(incarnation_id from, const error& cause) override;
  void on_undelivered(incarnation_id to, std::span<const std::byte> payload, const error& cause) override;

private:
  std::shared_ptr<office_core> core_;
  transport& network_;
  bulk_listener* bulk_{nullptr};
  path_lost_handler interrupted_;
};

} // namespace troupe
