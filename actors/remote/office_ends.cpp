// Office core: how handles, requests and peers end, each exactly once (PO-2, PO-6).
#include <algorithm>
#include <utility>

#include <caf/make_message.hpp>
#include <caf/system_messages.hpp>

#include "actors/remote/office_core.hpp"
#include "actors/system/errors.hpp"
#include "runtime/base/planted_bug.hpp"
#include "runtime/base/probe.hpp"

namespace troupe {
namespace {

constexpr std::size_t lost_peers_max = 4096; // remembered; the oldest is forgotten

remote_proxy* proxy_of(const caf::strong_actor_ptr& pointer) {
  return static_cast<remote_proxy*>(pointer->get());
}

} // namespace

void office_core::kill(remote_proxy& proxy, const caf::error& reason) {
  const caf::strong_actor_ptr keep{proxy.ctrl()};
  const auto& place = proxy.place();
  if (const auto found = peers_.find(place.peer); found != peers_.end()) {
    auto& peer = found->second;
    peer.opened.erase(proxy.channel());
    const auto named = peer.named.find(place.name);
    if (named != peer.named.end() && named->second == keep) peer.named.erase(named);
  }
  fail_requests_of(&proxy, to_troupe(reason));
  proxy.kill_proxy(nullptr, reason);
  tell_waiting(proxy);
}

void office_core::tell_waiting(remote_proxy& proxy) {
  const auto edge = caf::actor_cast<caf::actor>(caf::strong_actor_ptr{proxy.ctrl()});
  for (const auto& who : std::exchange(proxy.waiting(), {}))
    who->enqueue(nullptr, caf::make_message_id(), caf::make_message(edge_ready{edge}), nullptr);
}

void office_core::peer_lost(incarnation_id peer, const error& cause) {
  if (lost_.insert(peer).second) {
    lost_order_.push_back(peer);
    if (lost_order_.size() > lost_peers_max) {
      lost_.erase(lost_order_.front());
      lost_order_.pop_front();
    }
  }
  fail_peer(peer, cause);
}

void office_core::path_lost(incarnation_id peer, const error& cause) {
  fail_peer(peer, cause);
  if (path_lost_) path_lost_(peer, cause);
}

// The entry leaves the table first: whatever its end sets off finds a new one, or none.
void office_core::fail_peer(incarnation_id peer, const error& cause) {
  const auto node = peers_.extract(peer);
  if (node.empty()) return;
  probe<"office.peer_failed">::hit();
  const auto& entry = node.mapped();
  const auto reason = to_caf(cause);
  for (const auto& [channel, pointer] : entry.opened)
    fail_requests_of(proxy_of(pointer), cause);
  for (const auto& [channel, pointer] : entry.opened) {
    proxy_of(pointer)->kill_proxy(nullptr, reason);
    tell_waiting(*proxy_of(pointer));
  }
  for (const auto& [channel, inbound] : entry.inbound)
    if (inbound.account) inbound.account->close();
  for (const auto& [id, slot] : entry.returns) {
    if (const auto pointer = slot.lock()) proxy_of(pointer)->kill_proxy(nullptr, reason);
  }
  for (const auto& link : entry.links) {
    probe<"office.link_broken">::hit();
    const auto channel = entry.inbound.find(link.channel);
    if (channel == entry.inbound.end() || channel->second.target == nullptr) continue;
    channel->second.target->enqueue(nullptr, caf::make_message_id(),
                                    caf::make_message(caf::exit_msg{link.source->address(), reason}),
                                    nullptr);
  }
}

void office_core::close() {
  while (!peers_.empty())
    fail_peer(peers_.begin()->first, {errc::aborted, "this process has left the job"});
  if (deadline_timer_ != 0) runtime_.clock().cancel(deadline_timer_);
  deadline_timer_ = 0;
  const auto released = std::exchange(names_, {}); // what they set off finds an empty table
}

// -- Requests --

// Before it is sent: sending may find the path lost, and end it. 0: no more are allowed (PO-5).
std::uint64_t office_core::begin_request(remote_proxy& to, const caf::mailbox_element& what) {
  auto& peer = peers_[to.place().peer];
  if (peer.requests >= settings_.requests_max) return 0;
  ++peer.requests;
  const auto deadline = runtime_.clock().now() + settings_.request_timeout;
  requests_.emplace(++last_correlation_,
                    request{what.sender, caf::strong_actor_ptr{to.ctrl()}, what.mid.response_id(), deadline});
  arm_deadline();
  return last_correlation_;
}

void office_core::complete(std::uint64_t correlation, caf::message answer) {
  const auto node = requests_.extract(correlation);
  if (node.empty()) {
    probe<"office.answer_late">::hit();
    ++counters_.late;
    return;
  }
  const auto& ended = node.mapped();
  const auto peer = peers_.find(proxy_of(ended.proxy)->place().peer);
  if (peer != peers_.end()) --peer->second.requests;
  ended.requester->enqueue(ended.proxy, ended.answer_id, std::move(answer), nullptr);
}

void office_core::fail_requests_of(const remote_proxy* proxy, const error& cause) {
  std::vector<std::uint64_t> ended;
  if (TROUPE_PLANTED("office.request_forgotten")) return;
  for (const auto& [correlation, each] : requests_) {
    if (probe<"office.request_failed">::when(proxy_of(each.proxy) == proxy)) ended.push_back(correlation);
  }
  for (const auto correlation : ended)
    complete(correlation, caf::make_message(to_caf(cause)));
}

void office_core::drop_requests_by(caf::actor_id requester) {
  std::vector<request> dropped; // the last references go when the table is whole again
  for (auto each = requests_.begin(); each != requests_.end();) {
    if (each->second.requester->id() != requester) {
      ++each;
      continue;
    }
    probe<"office.requester_ended">::hit();
    const auto peer = peers_.find(proxy_of(each->second.proxy)->place().peer);
    if (peer != peers_.end()) --peer->second.requests;
    dropped.push_back(std::move(each->second));
    each = requests_.erase(each);
  }
}

void office_core::arm_deadline() {
  if (deadline_timer_ != 0 || requests_.empty()) return;
  const auto left = requests_.begin()->second.deadline - runtime_.clock().now();
  deadline_timer_ = runtime_.clock().call_after(std::max(left, duration{0}), [link = weak_from_this()] {
    if (const auto self = link.lock()) self->fail_overdue();
  });
}

void office_core::fail_overdue() {
  deadline_timer_ = 0;
  const auto now = runtime_.clock().now();
  while (!requests_.empty() && requests_.begin()->second.deadline <= now) {
    probe<"office.request_overdue">::hit();
    complete(requests_.begin()->first, caf::make_message(to_caf({errc::timed_out, "no answer in time"})));
  }
  arm_deadline();
}

} // namespace troupe
