// Bulk transfers in: the listener lends a span, pieces are received into it.
//
// Pieces come in order of their offsets; one that does not fit what was announced ends the path, and one of a
// refused transfer is dropped. The span goes back to the listener once UCX writes into it no more.
#include <cstring>
#include <string>
#include <utility>

#include "transports/ucx/engine.hpp"

namespace troupe {

void ucx_engine::receive_announcement(ucx_connection& path, const bulk_body& body) {
  const bool sound =
      body.bytes != 0 && body.bytes <= limits::bulk_bytes_max && !path.incoming.contains(body.transfer);
  if (!sound) ++counters_.dropped_malformed;
  const bool room = sound && path.incoming.size() < limits::ucx_bulk_per_peer_max && listener_ != nullptr;
  const auto target =
      room ? listener_->on_bulk_announced(path.peer, {body.transfer, body.bytes}) : std::span<std::byte>{};
  if (!target.empty()) {
    invariant(target.size() == body.bytes, "the listener lends exactly what a transfer announced");
    auto bulk = std::make_unique<incoming_bulk>();
    bulk->owner = &path;
    bulk->transfer = body.transfer;
    bulk->target = target;
    path.incoming.emplace(body.transfer, std::move(bulk));
  }
  if (path.close_wanted) return;                 // by the listener, just now
  if (pieces_whole() && !target.empty()) return; // they are on their way
  send_owed(path, target.empty() ? frame_kind::bulk_refuse : frame_kind::bulk_accept,
            std::as_bytes(std::span{&body, 1}));
}

ucs_status_t ucx_engine::on_piece(void* engine, const void* header, std::size_t header_bytes, void* data,
                                  std::size_t bytes, const ucp_am_recv_param_t* param) {
  auto& self = *static_cast<ucx_engine*>(engine);
  const bool whole = (param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) == 0;
  const auto status =
      self.receive_piece({static_cast<const std::byte*>(header), header_bytes}, data, bytes, whole);
  return whole ? UCS_OK : status; // `data` of a whole one stays UCX's
}

ucs_status_t ucx_engine::receive_piece(std::span<const std::byte> header, void* data, std::size_t bytes,
                                       bool whole) {
  auto fault = frame_fault::none;
  const auto piece = read_piece_header(header, job_, fault);
  if (!piece) {
    count_fault(fault);
    return UCS_ERR_REJECTED;
  }
  auto* path = find(piece->from);
  if (path == nullptr || path->theirs != piece->path || path->state > path_state::open ||
      path->close_wanted) {
    ++counters_.dropped_stale;
    return UCS_ERR_REJECTED;
  }
  const auto found = path->incoming.find(piece->transfer);
  if (found == path->incoming.end() && whole) { // refused, and on its way before its sender knew
    ++counters_.dropped_stale;
    return UCS_OK;
  }
  if (found == path->incoming.end() || piece->offset != found->second->offset ||
      bytes > found->second->target.size() - found->second->offset) {
    ++counters_.dropped_malformed;
    lose_later(*path, "a piece fits no transfer", UCS_ERR_INVALID_PARAM);
    return UCS_ERR_REJECTED;
  }
  auto& bulk = *found->second;
  auto* target = bulk.target.data() + bulk.offset;
  bulk.offset += bytes;
  ++bulk.pieces_in;
  if (whole) {
    std::memcpy(target, data, bytes);
    piece_received(bulk, bytes, piece->asks, UCS_OK);
    return UCS_OK;
  }
  ucp_request_param_t params{};
  params.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
  params.cb.recv_am = &ucx_engine::on_piece_received;
  params.user_data = &bulk;
  auto* request = ucp_am_recv_data_nbx(worker_->handle(), data, target, bytes, &params);
  if (!UCS_PTR_IS_PTR(request)) piece_received(bulk, bytes, false, UCS_PTR_STATUS(request));
  return UCS_OK;
}

void ucx_engine::on_piece_received(void* request, ucs_status_t status, std::size_t bytes, void* argument) {
  auto& bulk = *static_cast<incoming_bulk*>(argument);
  ucp_request_free(request);
  bulk.owner->engine->piece_received(bulk, bytes, false, status);
}

void ucx_engine::piece_received(incoming_bulk& bulk, std::size_t bytes, bool asks, ucs_status_t status) {
  auto& path = *bulk.owner;
  --bulk.pieces_in;
  bulk.received += bytes;
  if (status != UCS_OK) {
    if (path.state != path_state::draining) lose_later(path, "receiving a piece", status);
    return;
  }
  counters_.bytes_received += bytes;
  if (path.close_wanted || path.state > path_state::open) return;
  const bulk_body body{.transfer = bulk.transfer, .bytes = bulk.received};
  if (bulk.received != bulk.target.size()) {
    if (asks) send_owed(path, frame_kind::bulk_taken, std::as_bytes(std::span{&body, 1}));
    return;
  }
  ++counters_.bulk_received;
  path.incoming.erase(bulk.transfer);
  send_owed(path, frame_kind::bulk_complete, std::as_bytes(std::span{&body, 1}));
  if (listener_ != nullptr) listener_->on_bulk_received(path.peer, body.transfer, {});
}

bool ucx_engine::receiving(const ucx_connection& path) {
  for (const auto& [transfer, bulk] : path.incoming)
    if (bulk->pieces_in != 0) return true;
  return false;
}

// Gives back the spans that UCX has let go of; the others follow when it does.
void ucx_engine::release_incoming(ucx_connection& path, const error& cause) {
  for (auto at = path.incoming.begin(); at != path.incoming.end();) {
    if (at->second->pieces_in != 0) {
      ++at;
      continue;
    }
    const auto transfer = at->first;
    at = path.incoming.erase(at);
    if (listener_ != nullptr) listener_->on_bulk_received(path.peer, transfer, cause);
  }
}

} // namespace troupe
