// Transport seam: messages and bulk transfers between processes, each named by its incarnation.
//
// All calls and all callbacks happen on the event loop. Order is kept per pair of processes; at most once.
// A local completion proves nothing about the receiver. Path errors are suspicion: membership decides.
// A path is one connection: after it failed, another one to the same incarnation may be opened. A peer that
// said goodbye, or was closed, does not come back.
//
// Invariants:
//   TR-1    a payload is handed to `on_message` at most once, in the order sent by that peer.
//   TR-2    after `close`, or `on_path_lost`, nothing of that path is handed up any more.
//   TR-3    every `send_bulk` completion is called exactly once, also when the peer dies.
//   TR-4    the source span of a bulk transfer is not touched after its completion was called.
//   TR-5    on one path, what was sent after `send_bulk` is handed up after that transfer's announcement.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "runtime/base/error.hpp"
#include "runtime/base/ids.hpp"
#include "runtime/base/task.hpp"

namespace troupe {

using peer_address = std::vector<std::byte>; // opaque to all but the transport that made it

struct bulk_announcement {
  std::uint64_t transfer; // chosen by the sender's caller; unique per pair of processes
  std::uint64_t bytes;    // size of what follows, at most limits::bulk_bytes_max
};

using bulk_done = inline_function<void(expected<void>), 64>;

class transport_listener {
public:
  virtual ~transport_listener() = default;
  // `payload` is 8-byte aligned and valid during the call only.
  virtual void on_message(incarnation_id from, std::span<const std::byte> payload) = 0;
  // Where the transfer shall be written: exactly `bytes` long, or empty to refuse it. Stays valid until
  // `on_bulk_received` for the same transfer.
  virtual std::span<std::byte> on_bulk_announced(incarnation_id from, const bulk_announcement& what) = 0;
  virtual void on_bulk_received(incarnation_id from, std::uint64_t transfer, expected<void> result) = 0;
  // Once per path. `cause.code` says what is known: path_lost (it failed), refused (nobody listens at the
  // peer's address), actor_stopped (the peer said goodbye).
  virtual void on_path_lost(incarnation_id from, const error& cause) = 0;
  // From a transport that opens failed paths again (runtime/session): it is trying; nothing is lost yet.
  virtual void on_path_interrupted(incarnation_id /*from*/, const error& /*cause*/) {}
  // From a transport that keeps what it sent until it has arrived (runtime/session), before `on_path_lost`:
  // the fate of this message is unknown.
  virtual void on_undelivered(incarnation_id /*to*/, std::span<const std::byte> /*payload*/,
                              const error& /*cause*/) {}
};

class transport {
public:
  virtual ~transport() = default;
  virtual void set_listener(transport_listener* listener) = 0; // not owned; set before the first connect
  [[nodiscard]] virtual peer_address local_address() const = 0;
  [[nodiscard]] virtual incarnation_id self() const = 0;

  // Opens a path; idempotent while one is open. Messages may be sent at once; they queue (bounded) until
  // the handshake is through. A handshake that does not end in time is a lost path.
  virtual expected<void> connect(incarnation_id peer, const peer_address& address) = 0;
  // Copies `payload` (at most limits::payload_bytes_max). errc: path_lost, too_large, no_credit.
  // Replies work on a path that the peer opened: an incoming handshake makes its incarnation reachable.
  virtual expected<void> send(incarnation_id peer, std::span<const std::byte> payload) = 0;
  // The same, in front of what waits where there is a choice; not ordered with other messages.
  virtual expected<void> send_urgent(incarnation_id peer, std::span<const std::byte> payload) {
    return send(peer, payload);
  }
  // The same, for what answers or ends something: refused only where the bound on ordinary messages is left
  // far behind. The caller bounds how much of it there can be.
  virtual expected<void> send_owed(incarnation_id peer, std::span<const std::byte> payload) {
    return send(peer, payload);
  }
  // `bytes` stays valid and unchanged until `done` was called (TR-3, TR-4).
  virtual void send_bulk(incarnation_id peer, std::uint64_t transfer, std::span<const std::byte> bytes,
                         bulk_done done) = 0;
  // Says goodbye where possible, then closes; never blocks. Unknown peers are ignored.
  virtual void close(incarnation_id peer) = 0;
  // Ends the path without a word; it may be opened again, which tells the peer that this one has failed. Not
  // announced here.
  virtual void drop(incarnation_id peer) = 0;
};

} // namespace troupe
