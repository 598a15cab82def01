// UCX transport: the transport seam over UCX active messages, driven by the event loop.
//
// Flow:     send -> send slot -> UCX eager message -> on_message; send_bulk -> announce, accept, pieces
//           by rendezvous straight into the listener's span, complete.
// Owns:     the process's UCX worker, one endpoint a peer, send slots (bounded).
// Runs on:  the event loop, woken by the worker's descriptor; one object a process, nothing global.
// Fails:    a failed path is `on_path_lost` once; every bulk completion is still called. Never a verdict.
// Invariants (beside TR-1 .. TR-5 of the seam):
//   UX-1    a path is open only after a hello has gone both ways; messages queue (bounded) until then.
//   UX-2    an incarnation that said goodbye, or was closed, is never reachable again; of one whose path was
//           lost only a newer path is heard.
//   UX-3    a frame of another job, version, unknown or dead sender is dropped and counted.
//   UX-4    an endpoint is closed exactly once, and progressed until its requests have drained.
//   UX-5    nothing is closed or created inside a UCX callback: it is recorded, and done afterwards.
//   UX-6    a hello that does not prove the job's path secret makes no path; it is dropped and counted, and
//           UCX never sees the address in it.
// UX-7    pieces are dropped, or by rendezvous rejected, only on a path that their receiver is ending. So
// that ends nothing at the sender: the goodbye, or the error, that follows does, and says why.
//   UX-8    a path may be closed, or its peer may die, at any moment of the handshake: UCX then holds no
//           reply of its wire-up that could not leave (1.13 aborts the process where it does). A close is
//           said once the path is open, within the linger time-out.
//   UX-9    an endpoint that UCX frees when it reads is not written to (1.13 crashes where it is): "writable"
//           comes from a second look at the sockets (event_order.cpp).
// Why:      docs/design/0012-ucx-paths.md, 0027-path-secret.md, 0043-ucx-events-and-segments.md
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <boost/asio/io_context.hpp>

#include "runtime/base/error.hpp"
#include "runtime/base/time.hpp"
#include "runtime/seams/clock.hpp"
#include "runtime/seams/path_secret.hpp"
#include "runtime/seams/transport.hpp"

namespace troupe {

struct ucx_settings {
  std::string transports{"tcp"}; // UCX_TLS; anything else is unsupervised ground (docs/rooms/ucx.md)
  std::string devices{"lo"};     // UCX_NET_DEVICES; empty: what UCX chooses
  duration handshake_timeout{std::chrono::seconds{2}};
  // How long a goodbye waits for its answer, and a close for the path to be open.
  duration linger_timeout{std::chrono::milliseconds{250}};
  std::size_t in_flight_bytes_max{4U << 20};  // per peer; above: errc::no_credit
  std::size_t send_pool_bytes_max{64U << 20}; // all peers together
  std::size_t bulk_piece_bytes{240U << 10};   // fits a segment of UCX's, with what goes in front
  unsigned bulk_pieces_in_flight{4};          // per transfer: sent, and not known to have arrived
  // Further UCX options, named without "UCX_"; they come last.
  std::vector<std::pair<std::string, std::string>> options;
};

struct ucx_counters {
  std::uint64_t messages_sent{0};
  std::uint64_t messages_received{0};
  std::uint64_t bytes_sent{0};     // payloads, bulk included
  std::uint64_t bytes_received{0}; // payloads, bulk included
  std::uint64_t bulk_sent{0};
  std::uint64_t bulk_received{0};
  std::uint64_t dropped_stale{0};     // another job or version, a dead or unknown sender
  std::uint64_t dropped_unproved{0};  // hellos without the proof of the path secret
  std::uint64_t dropped_malformed{0}; // not a frame of ours, or one that breaks its rules
  std::uint64_t paths_opened{0};
  std::uint64_t paths_lost{0};
  std::uint64_t goodbyes_received{0};
};

class ucx_engine;

class ucx_transport final : public transport {
public:
  // errc::bad_argument: names the transports and devices that this machine has not. No child may be forked
  // (without exec) afterwards.
  static expected<std::unique_ptr<ucx_transport>> open(boost::asio::io_context& loop, clock_seam& clock,
                                                       incarnation_id self, ucx_settings settings);
  // Says goodbye where that works at once; then everything is closed by force.
  ~ucx_transport() override;

  // Which job's frames are sent and accepted, and the secret that its rendezvous gave; before they are set,
  // nothing is accepted and `connect` refuses.
  void set_job(job_id job, const path_secret& secret);

  void set_listener(transport_listener* listener) override;
  [[nodiscard]] peer_address local_address() const override;
  [[nodiscard]] incarnation_id self() const override;
  expected<void> connect(incarnation_id peer, const peer_address& address) override;
  expected<void> send(incarnation_id peer, std::span<const std::byte> payload) override;
  void send_bulk(incarnation_id peer, std::uint64_t transfer, std::span<const std::byte> bytes,
                 bulk_done done) override;
  void close(incarnation_id peer) override;
  void drop(incarnation_id peer) override;

  // For a loop that spins: whether something has come, without waiting for the descriptor to say so. On the
  // event loop, between its handlers.
  bool look();
  [[nodiscard]] const ucx_counters& counters() const;
  // What UCX chose for an open path, as it prints it; empty for an unknown peer.
  [[nodiscard]] std::string lanes(incarnation_id peer) const;
  // Nothing is open, closing or draining: the state in which a process ends politely.
  [[nodiscard]] bool idle() const;

private:
  explicit ucx_transport(std::shared_ptr<ucx_engine> engine);
  std::shared_ptr<ucx_engine> engine_;
};

} // namespace troupe
