// Session transport: how paths are opened, fail, are opened again, and given up.
#include <algorithm>
#include <cstring>
#include <string>

#include "runtime/base/probe.hpp"
#include "runtime/base/units.hpp"
#include "runtime/session/session_transport.hpp"

namespace troupe {
namespace {

constexpr duration retry_first{std::chrono::milliseconds{10}};
constexpr duration retry_longest{std::chrono::milliseconds{250}};

// At once, then after 10 ms, and twice as long each time.
duration pause_before(unsigned tries) {
  if (tries == 0) return duration{0};
  return std::min(retry_first * (1U << std::min(tries - 1, 10U)), retry_longest);
}

} // namespace

void session_transport::try_path(session& of) {
  if (of.ended || of.state != path_state::down || of.address.empty()) return;
  const auto path = inner_.connect(of.peer, of.address);
  if (!path) return give_up(of, path.failure());
  of.state = path_state::greeting;
  send_resume(of);
}

// Says how far we have come: the peer sends again what lies beyond.
void session_transport::send_resume(session& to) {
  to.fresh = !to.lanes[0].any_sent() && !to.lanes[1].any_sent();
  const auto address = inner_.local_address();
  const session_header header{.magic = session_magic,
                              .kind = session_kind::resume,
                              .lane = session_lane_id::ordinary,
                              .count = 0,
                              .sequence = 0,
                              .acked = {to.lanes[0].received(), to.lanes[1].received()}};
  const resume_body body{static_cast<std::uint32_t>(to.done.size()),
                         static_cast<std::uint32_t>(address.size())};
  resume_room_.clear();
  const auto append = [this](const void* from, std::size_t bytes) {
    const auto* first = static_cast<const std::byte*>(from);
    resume_room_.insert(resume_room_.end(), first, first + bytes);
  };
  append(&header, sizeof(header));
  append(&body, sizeof(body));
  for (const auto transfer : to.done)
    append(&transfer, sizeof(transfer));
  append(address.data(), address.size());
  (void)inner_.send(to.peer, resume_room_); // refused: the path is lost, which will be told
}

// Both have said how far they have come.
void session_transport::opened(session& of) {
  of.state = path_state::open;
  if (probe<"session.bridged">::when(of.ever_open)) ++counters_.bridged;
  of.ever_open = true;
  of.tries = 0;
  of.refusals = 0;
  cancel_timers(of);
  transmit(of);
  submit_all(of);
}

void session_transport::on_path_lost(incarnation_id from, const error& cause) {
  const auto hit = find(from);
  if (hit == nullptr) return;
  if (cause.code == errc::actor_stopped) return end(hit, cause); // it said goodbye
  interrupted(*hit, cause);
}

void session_transport::interrupted(session& of, const error& cause) {
  probe<"session.interrupted">::hit();
  ++counters_.interruptions;
  of.state = path_state::down;
  for (auto& stream : of.lanes)
    stream.rewind();
  forget_sent(of.peer);
  if (of.limit == 0) {
    limit(of, settings_.bridge_for);
    if (of.ever_open && listener_ != nullptr) listener_->on_path_interrupted(of.peer, cause);
  }
  if (cause.code == errc::refused && ++of.refusals >= settings_.refusals_max) {
    probe<"session.peer_gone">::hit();
    return give_up(of, cause);
  }
  clock_.cancel(of.retry);
  // Where both see it, one of them opens the new path: two that are opened at once are more for the transport
  // below to sort out.
  const auto lag = of.tries == 0 && inner_.self() < of.peer ? retry_first : duration{0};
  of.retry =
      clock_.call_after(lag + pause_before(of.tries++), guarded([peer = of.peer](session_transport& self) {
                          const auto again = self.find(peer);
                          if (again == nullptr) return;
                          again->retry = 0;
                          self.try_path(*again);
                        }));
}

void session_transport::limit(session& of, duration longest) {
  of.limit =
      clock_.call_after(longest, guarded([peer = of.peer, longest](session_transport& self) {
                          const auto late = self.find(peer);
                          if (late == nullptr) return;
                          late->limit = 0;
                          self.give_up(*late, {errc::path_lost, "no path to " + to_string(peer).substr(0, 8) +
                                                                    " for " + format_duration(longest)});
                        }));
}

void session_transport::give_up(session& of, const error& cause) {
  probe<"session.given_up">::hit();
  const auto which = find(of.peer);
  if (which == nullptr) return;
  ++counters_.given_up;
  inner_.close(of.peer);
  end(which, {errc::path_lost, cause.text});
}

// Whatever the listener does in these calls finds no session any more.
void session_transport::end(const session_ptr& which, const error& cause) {
  const auto peer = which->peer;
  cancel_timers(*which);
  which->ended = true;
  sessions_.erase(peer);
  ended_.add(peer);
  fail_transfers(peer, cause);
  for (auto& stream : which->lanes) {
    stream.give_up([&](std::span<const std::byte> payload) { // SE-2
      ++counters_.undelivered;
      if (listener_ != nullptr) listener_->on_undelivered(peer, payload, cause);
    });
  }
  if (listener_ != nullptr) listener_->on_path_lost(peer, cause);
}

void session_transport::break_rules(session& by) {
  ++counters_.malformed;
  inner_.drop(by.peer);
  interrupted(by, {errc::path_lost, "the peer broke the rules of the session"});
}

void session_transport::cancel_timers(session& of) {
  clock_.cancel(std::exchange(of.retry, 0));
  clock_.cancel(std::exchange(of.limit, 0));
}

} // namespace troupe
