// Session transport: what arrives.
#include <string>

#include "runtime/base/probe.hpp"
#include "runtime/session/session_transport.hpp"

namespace troupe {

void session_transport::on_message(incarnation_id from, std::span<const std::byte> frame) {
  const auto header = read_session_header(frame);
  if (!header) {
    ++counters_.malformed;
    return;
  }
  auto known = find(from);
  if (known == nullptr) {
    const bool welcome = header->kind == session_kind::resume && !ended_.contains(from) &&
                         sessions_.size() < limits::sessions_max;
    if (probe<"session.stale_frame">::when(!welcome)) {
      ++counters_.stale;
      return;
    }
    known = add_session(from, {});
  }
  for (std::size_t i = 0; i < session_lanes; ++i)
    if (!known->lanes[i].acknowledge(header->acked[i], blocks_)) return break_rules(*known);
  switch (header->kind) {
  case session_kind::resume:
    return on_resume(known, frame);
  case session_kind::ack:
    return transmit(*known);
  case session_kind::batch:
    return on_batch(known, *header, frame);
  case session_kind::sent:
  case session_kind::found:
    return on_digest(*known, header->kind, frame);
  }
}

// The first frame of a path, each way.
void session_transport::on_resume(const session_ptr& from, std::span<const std::byte> frame) {
  const auto resume = read_resume(frame);
  if (!resume || from->state == path_state::open) return break_rules(*from);
  if (!resume->address.empty()) from->address.assign(resume->address.begin(), resume->address.end());
  if (from->state == path_state::down) send_resume(*from); // the peer opened this path
  note_received(*from, resume->done);
  opened(*from);
}

void session_transport::on_digest(session& from, session_kind kind, std::span<const std::byte> frame) {
  const auto body = read_transfer(frame);
  if (!body || from.state != path_state::open) return break_rules(from);
  kind == session_kind::sent ? on_sent(from, *body) : on_found(from, *body);
}

void session_transport::on_batch(const session_ptr& from, const session_header& header,
                                 std::span<const std::byte> frame) {
  if (from->state != path_state::open) return break_rules(*from);
  auto& stream = from->lanes[static_cast<std::size_t>(header.lane)];
  if (!stream.receive(header.sequence)) return break_rules(*from); // SE-1
  owe_ack(*from, frame.size());
  auto left = frame.subspan(sizeof(session_header));
  for (std::uint16_t i = 0; i < header.count && !from->ended; ++i) {
    const auto message = take_message(left);
    if (!message) return break_rules(*from);
    ++counters_.messages_received;
    if (listener_ != nullptr) listener_->on_message(from->peer, *message);
  }
}

} // namespace troupe
