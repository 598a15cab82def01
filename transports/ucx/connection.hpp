// A path to one peer, as the engine keeps it. Plain data; engine.hpp says who changes what.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>

#include <ucp/api/ucp.h>

#include "runtime/seams/clock.hpp"
#include "runtime/seams/transport.hpp"
#include "transports/ucx/frame.hpp"
#include "transports/ucx/limits.hpp"
#include "transports/ucx/send_pool.hpp"

namespace troupe {

class ucx_engine;
struct ucx_connection;

// A piece on its way out. UCX reads `header` and the source until the request has completed.
struct outgoing_piece {
  piece_header header{};
  std::size_t bytes{0};
  struct outgoing_bulk* bulk{nullptr}; // null: free
};

struct outgoing_bulk {
  ucx_connection* owner{nullptr};
  std::uint64_t transfer{0};
  std::span<const std::byte> source;
  bulk_done done;
  std::size_t offset{0};  // of the next piece
  std::size_t taken{0};   // bytes known to have arrived
  std::size_t asked{0};   // as far as which the receiver was asked to say so
  unsigned pieces_out{0}; // held by UCX
  bool accepted{false};
  bool rejected{false}; // the peer takes no more pieces: it is ending the path (UX-7)
  bool complete{false}; // the receiver has everything
  std::optional<error> failure;
  std::array<outgoing_piece, limits::ucx_bulk_pieces_in_flight_max> pieces;
};

struct incoming_bulk {
  ucx_connection* owner{nullptr};
  std::uint64_t transfer{0};
  std::span<std::byte> target;
  std::size_t offset{0};   // expected of the next piece
  std::size_t received{0}; // bytes that have arrived
  unsigned pieces_in{0};   // UCX writes into `target` while this is not 0
};

enum class path_state : unsigned char {
  connecting, // a hello has not gone both ways
  open,
  lingering, // our goodbye is on its way; theirs has not come
  draining,  // the endpoint is being closed by force
};

struct ucx_connection {
  ucx_engine* engine{nullptr};
  std::uint64_t id{0};     // what deferred work, timers and the peer name: a stale one finds nothing
  std::uint64_t theirs{0}; // the peer's number of this path; 0: its hello has not come
  incarnation_id peer;
  peer_address address;
  path_state state{path_state::connecting};
  send_slot* hello{nullptr};     // ours, until UCX has taken it
  std::uint64_t confirmed_by{0}; // which path of theirs has heard our hello
  std::uint64_t confirmed{0};    // which path of theirs was told that its hello has come
  ucp_ep_h endpoint{nullptr};
  bool endpoint_closing{false}; // UX-4
  bool endpoint_closed{false};
  timer_id timer{0}; // handshake, linger, or drain

  std::uint64_t next_send{1};
  std::uint64_t next_receive{1};
  std::size_t in_flight_bytes{0}; // queued or held by UCX
  unsigned sends_out{0};          // requests held by UCX
  send_slot* queue_first{nullptr};
  send_slot* queue_last{nullptr};

  std::map<std::uint64_t, std::unique_ptr<outgoing_bulk>> outgoing;
  std::map<std::uint64_t, std::unique_ptr<incoming_bulk>> incoming;

  bool close_wanted{false};   // the caller closed it: nothing more is handed up (TR-2)
  bool ended_for_good{false}; // by a goodbye, ours or theirs
  std::optional<error> loss;  // why it ended, until it is handed up
};

} // namespace troupe
