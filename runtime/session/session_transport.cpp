#include "runtime/session/session_transport.hpp"

#include <algorithm>
#include <cstring>
#include <string>

#include "runtime/base/probe.hpp"

namespace troupe {
namespace {

constexpr std::size_t ack_bytes_max = 128 * 1024; // received without a word back
constexpr duration credit_retry{std::chrono::milliseconds{1}};

std::string short_name(incarnation_id who) {
  return to_string(who).substr(0, 8);
}

} // namespace

session_transport::session_transport(executor& loop, clock_seam& clock, transport& inner,
                                     session_settings settings)
    : loop_{loop}
    , clock_{clock}
    , inner_{inner}
    , settings_{settings}
    , handle_{std::make_shared<session_transport*>(this)} {}

session_transport::~session_transport() {
  inner_.set_listener(nullptr);
  listener_ = nullptr;
  handle_.reset();
  clock_.cancel(ack_timer_);
  clock_.cancel(credit_timer_);
  for (auto& [peer, one] : sessions_)
    cancel_timers(*one);
  const error closed{errc::aborted, "the sessions of this process have ended"};
  for (const auto& [key, what] : std::exchange(outgoing_, {}))
    if (!what->held) what->done(closed); // the others when the transport below lets go of them
}

void session_transport::set_listener(transport_listener* listener) {
  listener_ = listener;
  inner_.set_listener(listener == nullptr ? nullptr : this);
}

// --- sessions -------------------------------------------------------------------------------------------

session_transport::session_ptr session_transport::find(incarnation_id peer) const {
  const auto found = sessions_.find(peer);
  return found == sessions_.end() ? nullptr : found->second;
}

session_transport::session_ptr session_transport::add_session(incarnation_id peer, peer_address address) {
  auto added = std::make_shared<session>(session{
      .peer = peer,
      .address = std::move(address),
      .lanes = {lane{settings_.window_bytes}, lane{settings_.urgent_window_bytes}},
  });
  sessions_.emplace(peer, added);
  return added;
}

expected<void> session_transport::connect(incarnation_id peer, const peer_address& address) {
  if (const auto known = find(peer)) {
    if (known->address.empty()) known->address = address;
    return {};
  }
  if (ended_.contains(peer))
    return error{errc::path_lost,
                 "the session with " + short_name(peer) + " has ended; a restarted process is new"};
  if (sessions_.size() >= limits::sessions_max)
    return error{errc::no_credit, "more than " + std::to_string(limits::sessions_max) + " sessions"};
  if (auto path = inner_.connect(peer, address); !path) return path;
  const auto added = add_session(peer, address);
  added->state = path_state::greeting;
  added->fresh = true;
  limit(*added, settings_.connect_for);
  send_resume(*added);
  return {};
}

void session_transport::close(incarnation_id peer) {
  const auto closing = find(peer);
  if (closing == nullptr) return;
  closing->lanes[0].seal();
  transmit(*closing);
  cancel_timers(*closing);
  closing->ended = true;
  sessions_.erase(peer);
  ended_.add(peer);
  inner_.close(peer);
  fail_transfers(peer, {errc::aborted, "the path to " + short_name(peer) + " was closed"});
}

// --- what goes out --------------------------------------------------------------------------------------

expected<void> session_transport::send(incarnation_id peer, std::span<const std::byte> payload) {
  return post(peer, session_lane_id::ordinary, false, payload);
}

expected<void> session_transport::send_owed(incarnation_id peer, std::span<const std::byte> payload) {
  return post(peer, session_lane_id::ordinary, true, payload);
}

expected<void> session_transport::send_urgent(incarnation_id peer, std::span<const std::byte> payload) {
  return post(peer, session_lane_id::urgent, false, payload);
}

expected<void> session_transport::post(incarnation_id peer, session_lane_id which, bool owed,
                                       std::span<const std::byte> payload) {
  if (payload.size() > limits::envelope_bytes_max)
    return error{errc::too_large, "a message of " + std::to_string(payload.size()) + " bytes; at most " +
                                      std::to_string(limits::envelope_bytes_max) + " fit"};
  const auto found = sessions_.find(peer);
  if (found == sessions_.end()) return error{errc::path_lost, "no path to " + short_name(peer)};
  const auto& to = found->second;
  auto& stream = to->lanes[static_cast<std::size_t>(which)];
  if (probe<"session.window_full">::when(!stream.has_room(payload.size(), owed))) // SE-3
    return error{errc::no_credit, "too many bytes on their way to " + short_name(peer)};
  stream.add(payload, blocks_);
  ++counters_.messages_sent;
  if (which == session_lane_id::ordinary) {
    flush_later(to);
    return {};
  }
  stream.seal();
  transmit(*to);
  return {};
}

void session_transport::flush_later(const session_ptr& to) {
  if (to->flush_due) return;
  to->flush_due = true;
  flushes_.push_back(to);
  if (std::exchange(flush_posted_, true)) return;
  loop_.post(guarded([](session_transport& self) { self.flush(); }));
}

void session_transport::flush() {
  flush_posted_ = false;
  for (const auto& to : flushes_) {
    to->flush_due = false;
    to->lanes[0].seal();
    transmit(*to);
  }
  flushes_.clear();
}

// Urgent messages first. Before the peer has said how far it has come only a new session may speak.
void session_transport::transmit(session& to) {
  if (to.ended || to.state == path_state::down || (to.state == path_state::greeting && !to.fresh)) return;
  const bool all = transmit(to, to.lanes[1], session_lane_id::urgent) &&
                   transmit(to, to.lanes[0], session_lane_id::ordinary);
  if (all || credit_timer_ != 0) return;
  credit_timer_ = clock_.call_after(credit_retry, guarded([](session_transport& self) {
                                      self.credit_timer_ = 0;
                                      for (const auto& [peer, one] : self.sessions_)
                                        self.transmit(*one);
                                    }));
}

bool session_transport::transmit(session& to, lane& from, session_lane_id which) {
  while (auto* block = from.next_unsent()) {
    stamp(to, *block, which);
    const auto sent = inner_.send(to.peer, block->bytes());
    if (!sent) return sent.failure().code != errc::no_credit; // a lost path will tell
    from.note_sent();
    ++counters_.batches_sent;
    to.ack_due = false;
    to.unacked_bytes = 0;
  }
  return true;
}

void session_transport::stamp(const session& to, session_block& block, session_lane_id which) const {
  const session_header header{.magic = session_magic,
                              .kind = session_kind::batch,
                              .lane = which,
                              .count = block.count,
                              .sequence = block.sequence,
                              .acked = {to.lanes[0].received(), to.lanes[1].received()}};
  std::memcpy(block.data(), &header, sizeof(header));
}

// --- acknowledgements -----------------------------------------------------------------------------------

void session_transport::owe_ack(session& to, std::size_t bytes) {
  to.ack_due = true;
  to.unacked_bytes += bytes;
  if (to.unacked_bytes >= std::min(ack_bytes_max, settings_.window_bytes / 4))
    send_ack(to);
  else
    arm_acks();
}

void session_transport::arm_acks() {
  if (ack_timer_ != 0) return;
  ack_timer_ = clock_.call_after(settings_.ack_delay, guarded([](session_transport& self) {
                                   self.ack_timer_ = 0;
                                   self.send_acks();
                                 }));
}

void session_transport::send_acks() {
  for (const auto& [peer, one] : sessions_)
    if (one->ack_due && one->state == path_state::open) send_ack(*one);
}

void session_transport::send_ack(session& to) {
  const session_header header{.magic = session_magic,
                              .kind = session_kind::ack,
                              .lane = session_lane_id::ordinary,
                              .count = 0,
                              .sequence = 0,
                              .acked = {to.lanes[0].received(), to.lanes[1].received()}};
  if (!inner_.send(to.peer, std::as_bytes(std::span{&header, 1}))) return arm_acks();
  to.ack_due = false;
  to.unacked_bytes = 0;
}

} // namespace troupe
