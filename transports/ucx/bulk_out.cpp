// Bulk transfers out: announce, send pieces, wait for "complete".
//
// Over tcp a piece is one message: UCX copies it into a segment, and out of one, whatever it is asked for;
// its own rendezvous would cost two messages more. A window of pieces keeps what is urgent from waiting
// behind them: the receiver says how far it has come when it is asked. The first window leaves with the
// announcement, and a receiver without room drops it. Over other lanes pieces wait for room, and go by UCX's
// rendezvous. `done` is called once no piece is held by UCX and the outcome is known (TR-3, TR-4): success
// only when the receiver has said that everything has arrived.
#include <algorithm>
#include <string>
#include <utility>

#include "transports/ucx/engine.hpp"

namespace troupe {
namespace {

constexpr unsigned am_pieces = 2;

} // namespace

void ucx_engine::send_bulk(incarnation_id peer, std::uint64_t transfer, std::span<const std::byte> bytes,
                           bulk_done done) {
  auto* path = find(peer);
  if (path == nullptr || path->close_wanted || path->state > path_state::open) {
    done(error{errc::path_lost, "no path to " + to_string(peer).substr(0, 8)});
    return;
  }
  if (bytes.size() > limits::bulk_bytes_max) {
    done(error{errc::too_large, "a transfer of " + std::to_string(bytes.size()) + " bytes; at most " +
                                    std::to_string(limits::bulk_bytes_max)});
    return;
  }
  if (bytes.empty() || path->outgoing.contains(transfer)) {
    done(error{errc::bad_argument, "transfer " + std::to_string(transfer) + " is empty or under way"});
    return;
  }
  if (path->outgoing.size() >= limits::ucx_bulk_per_peer_max) {
    done(error{errc::no_credit, "too many transfers to " + to_string(peer).substr(0, 8)});
    return;
  }
  auto bulk = std::make_unique<outgoing_bulk>();
  bulk->owner = path;
  bulk->transfer = transfer;
  bulk->source = bytes;
  bulk->done = std::move(done);
  path->outgoing.emplace(transfer, std::move(bulk));
  const bulk_body body{.transfer = transfer, .bytes = bytes.size()};
  send_owed(*path, frame_kind::bulk_announce, std::as_bytes(std::span{&body, 1}));
  if (!pieces_whole()) return;
  later([this, id = path->id, transfer] { go_on(id, transfer); });
}

void ucx_engine::receive_bulk_answer(ucx_connection& path, frame_kind kind, const bulk_body& body) {
  const auto found = path.outgoing.find(body.transfer);
  if (found == path.outgoing.end()) {
    ++counters_.dropped_malformed;
    return;
  }
  auto& bulk = *found->second;
  const bool whole = bulk.source.size() == body.bytes;
  if (kind == frame_kind::bulk_taken && body.bytes > bulk.taken && body.bytes <= bulk.offset) {
    bulk.taken = body.bytes;
    send_pieces(bulk);
  } else if (kind == frame_kind::bulk_accept && whole && !bulk.accepted) {
    bulk.accepted = true;
    send_pieces(bulk);
  } else if (kind == frame_kind::bulk_refuse && whole && !bulk.accepted) {
    bulk.failure = error{errc::refused, "transfer " + std::to_string(bulk.transfer) + " was refused"};
  } else if (kind == frame_kind::bulk_complete && whole && bulk.offset == body.bytes) {
    bulk.complete = true;
  } else {
    ++counters_.dropped_malformed;
  }
  settle(bulk);
}

// Not from where UCX dispatches what waited: a send there would overtake what still waits.
void ucx_engine::send_pieces(outgoing_bulk& bulk) {
  if (bulk.owner->state != path_state::open || bulk.owner->close_wanted) return;
  while (bulk.offset < bulk.source.size() && bulk.offset - bulk.taken < bulk_window()) {
    const auto free = std::ranges::find(bulk.pieces, nullptr, &outgoing_piece::bulk);
    if (free == bulk.pieces.end() || bulk.failure || bulk.rejected) return;
    send_piece(bulk, *free);
  }
}

void ucx_engine::send_piece(outgoing_bulk& bulk, outgoing_piece& piece) {
  piece.bulk = &bulk;
  piece.bytes = std::min(settings_.bulk_piece_bytes, bulk.source.size() - bulk.offset);
  const std::uint64_t wanted = asks(bulk, bulk.offset + piece.bytes) ? 1 : 0;
  piece.header = {.frame = make_frame_header(frame_kind::bulk_piece, job_, self_, bulk.owner->id, wanted),
                  .transfer = bulk.transfer,
                  .offset = bulk.offset};
  ucp_request_param_t params{};
  params.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS | UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
  params.flags = pieces_whole() ? UCP_AM_SEND_FLAG_EAGER : UCP_AM_SEND_FLAG_RNDV;
  params.cb.send = &ucx_engine::on_piece_sent;
  params.user_data = &piece;
  const auto* source = bulk.source.data() + bulk.offset;
  bulk.offset += piece.bytes;
  ++bulk.pieces_out;
  auto* request = ucp_am_send_nbx(bulk.owner->endpoint, am_pieces, &piece.header, sizeof(piece.header),
                                  source, piece.bytes, &params);
  if (UCS_PTR_IS_PTR(request))
    kick();
  else
    piece_sent(piece, UCS_PTR_STATUS(request));
}

std::size_t ucx_engine::bulk_window() const {
  return settings_.bulk_pieces_in_flight * settings_.bulk_piece_bytes;
}

// Twice a window, and not where the rest fits into it: nobody waits for that answer.
bool ucx_engine::asks(outgoing_bulk& bulk, std::size_t end) const {
  const bool rest_fits = bulk.source.size() - bulk.taken <= bulk_window();
  if (!pieces_whole() || rest_fits || end - bulk.asked < bulk_window() / 2) return false;
  bulk.asked = end;
  return true;
}

void ucx_engine::on_piece_sent(void* request, ucs_status_t status, void* argument) {
  auto& piece = *static_cast<outgoing_piece*>(argument);
  auto& bulk = *piece.bulk;
  auto& engine = *bulk.owner->engine;
  ucp_request_free(request);
  engine.piece_sent(piece, status);
  if (bulk.failure)
    engine.settle(bulk);
  else
    engine.later(
        [&engine, path = bulk.owner->id, transfer = bulk.transfer] { engine.go_on(path, transfer); });
}

void ucx_engine::piece_sent(outgoing_piece& piece, ucs_status_t status) {
  auto& bulk = *std::exchange(piece.bulk, nullptr);
  --bulk.pieces_out;
  counters_.bytes_sent += piece.bytes;
  if (!pieces_whole() && status == UCS_OK) bulk.taken += piece.bytes; // by rendezvous: the receiver has it
  if (status == UCS_OK || bulk.failure) return;
  if (status == UCS_ERR_REJECTED) {
    bulk.rejected = true;
    return;
  }
  bulk.failure = error{errc::path_lost,
                       "transfer " + std::to_string(bulk.transfer) + " broke: " + ucs_status_string(status)};
  if (bulk.owner->state != path_state::draining) lose_later(*bulk.owner, "sending a piece", status);
}

void ucx_engine::go_on(std::uint64_t of, std::uint64_t transfer) {
  auto* path = find(of);
  if (path == nullptr || path->state == path_state::draining) return;
  const auto found = path->outgoing.find(transfer);
  if (found == path->outgoing.end()) return;
  send_pieces(*found->second);
  settle(*found->second);
}

// Completes the transfer when nothing of it is held any more. `bulk` is gone afterwards.
void ucx_engine::settle(outgoing_bulk& bulk) {
  if (bulk.pieces_out != 0 || (!bulk.complete && !bulk.failure)) return;
  auto node = bulk.owner->outgoing.extract(bulk.transfer);
  auto& settled = *node.mapped();
  if (settled.complete && !settled.failure) {
    ++counters_.bulk_sent;
    settled.done({});
  } else {
    settled.done(*settled.failure);
  }
}

void ucx_engine::fail_outgoing(ucx_connection& path, const error& cause) {
  for (auto at = path.outgoing.begin(); at != path.outgoing.end();) {
    auto& bulk = *(at++)->second;
    if (!bulk.failure) bulk.failure = cause;
    settle(bulk);
  }
}

} // namespace troupe
