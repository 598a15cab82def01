// Session transport: a transport that survives the failure of its paths.
//
// Flow:     post office -> [session transport] -> a transport (UCX, loopback, simulated), and back
// Owns:     for each peer: what it may not have received yet, how far its own stream has come, transfers.
// Runs on:  the event loop; never blocks.
// Fails:    a path that fails is opened again and what was under way is sent again, for `bridge_for` at most;
//           then `on_undelivered` for each message whose fate is unknown, and `on_path_lost`, once.
//
// Messages of one turn of the loop leave together. What is sent urgently has a stream and a window of its
// own, and leaves first: it never waits for ordinary messages, and is not ordered with them.
//
// Invariants: those of the transport seam (TR-1 to TR-5) across all paths of a session, and
//   SE-1    a message is handed up at most once, in order per lane, however many paths it took.
//   SE-2    every message that `send` took has been received by the peer, or is reported as undelivered; only
//           a close of our own ends a session without a report.
//   SE-3    bytes kept for a peer never exceed the windows (and a reserve for what is owed); above, `send`
//           says errc::no_credit.
//   SE-4    an incarnation whose session has ended is never heard nor reached again.
//   SE-5    a transfer is handed up once; one that a lost path cut short begins again, in the same place.
//   SE-6    a transfer is whole when the digest of what arrived is the digest of what was sent, and for both
//           sides only then. One that arrived wrong begins again, a few times; then both have errc::corrupt.
// Why:      docs/design/0023-sessions.md, docs/design/0032-state-for-many.md
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "runtime/base/dead_incarnations.hpp"
#include "runtime/seams/clock.hpp"
#include "runtime/seams/executor.hpp"
#include "runtime/seams/transport.hpp"
#include "runtime/session/digest_queue.hpp"
#include "runtime/session/lane.hpp"
#include "runtime/session/limits.hpp"
#include "runtime/session/session_blocks.hpp"

namespace troupe {

struct session_settings {
  duration bridge_for{std::chrono::seconds{1}};      // from the failure of a path until it is given up
  duration connect_for{std::chrono::seconds{5}};     // from `connect` until there is a first path
  duration ack_delay{std::chrono::milliseconds{50}}; // at most, where nothing goes back anyway
  std::size_t window_bytes{2U << 20};                // ordinary messages kept for a peer
  std::size_t urgent_window_bytes{1U << 20};         // urgent ones
  unsigned refusals_max{3};                          // in a row, of a host where nobody listens any more
};

struct session_counters {
  std::uint64_t messages_sent{0};
  std::uint64_t messages_received{0};
  std::uint64_t batches_sent{0};
  std::uint64_t interruptions{0};   // paths that failed
  std::uint64_t bridged{0};         // of them, opened again
  std::uint64_t given_up{0};        // sessions that ended with their path
  std::uint64_t undelivered{0};     // messages reported
  std::uint64_t transfers_again{0}; // bulk that began again
  std::uint64_t arrived_wrong{0};   // bulk received with another digest than it was sent with
  std::uint64_t stale{0};           // frames of ended or unknown peers
  std::uint64_t malformed{0};       // frames that break the rules
};

class session_transport final : public transport, private transport_listener {
public:
  session_transport(executor& loop, clock_seam& clock, transport& inner, session_settings settings = {});
  ~session_transport() override;
  session_transport(const session_transport&) = delete;
  session_transport& operator=(const session_transport&) = delete;

  void set_listener(transport_listener* listener) override;
  [[nodiscard]] peer_address local_address() const override { return inner_.local_address(); }
  [[nodiscard]] incarnation_id self() const override { return inner_.self(); }
  expected<void> connect(incarnation_id peer, const peer_address& address) override;
  expected<void> send(incarnation_id peer, std::span<const std::byte> payload) override;
  expected<void> send_urgent(incarnation_id peer, std::span<const std::byte> payload) override;
  expected<void> send_owed(incarnation_id peer, std::span<const std::byte> payload) override;
  void send_bulk(incarnation_id peer, std::uint64_t transfer, std::span<const std::byte> bytes,
                 bulk_done done) override;
  void close(incarnation_id peer) override;
  void drop(incarnation_id peer) override { inner_.drop(peer); } // the path only; the session goes on

  // The path to a peer has failed, as seen by whoever decorates or tests the transport below.
  void break_path(incarnation_id peer, const error& cause) { on_path_lost(peer, cause); }

  [[nodiscard]] const session_counters& counters() const { return counters_; }

private:
  enum class path_state : unsigned char {
    down,     // none; waits for the next try, or for the peer's
    greeting, // ours is being opened; the peer has not said how far it has come
    open,
  };
  struct session {
    incarnation_id peer;
    peer_address address; // empty: only the peer can open a path
    path_state state{path_state::down};
    std::array<lane, session_lanes> lanes;
    bool fresh{false}; // nothing was ever sent before this path: no need to wait for the peer's word
    bool ever_open{false};
    bool ended{false};
    bool flush_due{false};
    bool ack_due{false};
    std::size_t unacked_bytes{0}; // received since the last acknowledgement
    unsigned tries{0};            // since the path failed
    unsigned refusals{0};
    timer_id retry{0};
    timer_id limit{0};
    std::deque<std::uint64_t> done; // transfers received whole
  };
  using session_ptr = std::shared_ptr<session>;
  using transfer_key = std::pair<incarnation_id, std::uint64_t>;
  struct outgoing_transfer {
    std::span<const std::byte> bytes;
    bulk_done done;
    unsigned tries{0};
    duration refused_for{0}; // pauses after refusals, in all
    unsigned wrong{0};       // times that it arrived with another digest
    unsigned told{0};        // the try whose digest the peer was told
    bool held{false};        // by the transport below
    bool received{false};    // the peer said so
    digest_queue::handle hashing;
    std::string digest; // empty: not known yet
    std::string found;  // by the peer, of this try; empty: not heard
  };
  struct incoming_transfer {
    std::span<std::byte> into;
    bool held{false}; // the transport below writes into it
    unsigned wrong{0};
    digest_queue::handle hashing;
    std::string digest;                // of what arrived; empty: not known yet
    std::optional<transfer_body> sent; // what the sender says of this arrival
  };

  // session_transport.cpp: sessions, and what goes out
  [[nodiscard]] session_ptr find(incarnation_id peer) const;
  session_ptr add_session(incarnation_id peer, peer_address address);
  expected<void> post(incarnation_id peer, session_lane_id which, bool owed,
                      std::span<const std::byte> payload);
  void flush_later(const session_ptr& to);
  void flush();
  void transmit(session& to);
  bool transmit(session& to, lane& from, session_lane_id which);
  void stamp(const session& to, session_block& block, session_lane_id which) const;
  void owe_ack(session& to, std::size_t bytes);
  void arm_acks();
  void send_acks();
  void send_ack(session& to);
  template <class Work>
  [[nodiscard]] task guarded(Work work); // does nothing once this object is gone

  // session_path.cpp: life of a path
  void try_path(session& of);
  void send_resume(session& to);
  void opened(session& of);
  void interrupted(session& of, const error& cause);
  void limit(session& of, duration longest); // gives it up then
  void give_up(session& of, const error& cause);
  void end(const session_ptr& which, const error& cause);
  void break_rules(session& by);
  void cancel_timers(session& of);
  void on_path_lost(incarnation_id from, const error& cause) override;

  // session_inbound.cpp
  void on_message(incarnation_id from, std::span<const std::byte> payload) override;
  void on_resume(const session_ptr& from, std::span<const std::byte> frame);
  void on_digest(session& from, session_kind kind, std::span<const std::byte> frame);
  void on_batch(const session_ptr& from, const session_header& header, std::span<const std::byte> frame);

  // session_bulk.cpp
  void submit(incarnation_id peer, std::uint64_t transfer);
  void settled(incarnation_id peer, std::uint64_t transfer, expected<void> result);
  void tell_digest(transfer_key which);
  void on_found(session& by, const transfer_body& found);
  void judge(transfer_key which);
  void finish(transfer_key which, const expected<void>& result);
  void submit_all(session& to);
  void note_received(session& by, std::span<const std::byte> transfers);
  void forget_sent(incarnation_id peer);
  void fail_transfers(incarnation_id peer, const error& cause);
  expected<void> say(session& to, session_kind kind, const transfer_body& what);
  void tell_found(incarnation_id peer, const transfer_body& what);
  void hash_arrival(transfer_key which);
  void on_sent(session& by, const transfer_body& sent);
  void check_arrival(transfer_key which);
  void hand_up(transfer_key which, expected<void> result);
  std::span<std::byte> on_bulk_announced(incarnation_id from, const bulk_announcement& what) override;
  void on_bulk_received(incarnation_id from, std::uint64_t transfer, expected<void> result) override;

  executor& loop_;
  clock_seam& clock_;
  transport& inner_;
  session_settings settings_;
  transport_listener* listener_{nullptr};
  session_counters counters_;
  std::unordered_map<incarnation_id, session_ptr> sessions_;
  dead_incarnations ended_{limits::sessions_ended_max}; // SE-4
  session_blocks blocks_;
  std::vector<session_ptr> flushes_;
  bool flush_posted_{false};
  timer_id ack_timer_{0};
  timer_id credit_timer_{0};
  digest_queue digests_{loop_};
  std::map<transfer_key, std::shared_ptr<outgoing_transfer>> outgoing_;
  std::map<transfer_key, incoming_transfer> incoming_;
  std::vector<std::byte> resume_room_;
  std::shared_ptr<session_transport*> handle_; // what deferred work finds this object by
};

template <class Work>
task session_transport::guarded(Work work) {
  return [weak = std::weak_ptr{handle_}, ready = std::move(work)]() mutable {
    if (const auto self = weak.lock()) ready(**self);
  };
}

} // namespace troupe
