#include "actors/remote/office_core.hpp"

#include <algorithm>
#include <utility>

#include <caf/actor_system.hpp>
#include <caf/make_actor.hpp>
#include <caf/system_messages.hpp>

#include "actors/system/errors.hpp"
#include "runtime/base/invariant.hpp"
#include "runtime/base/limits.hpp"
#include "runtime/base/probe.hpp"

namespace troupe {
namespace {

constexpr std::size_t ended_names_max = 1024;

std::span<std::byte> writable(std::vector<std::uint64_t>& room) {
  return std::as_writable_bytes(std::span{room});
}

remote_proxy& proxy_of(const caf::strong_actor_ptr& pointer) {
  return *static_cast<remote_proxy*>(pointer->get());
}

bool alive(const caf::strong_actor_ptr& actor) {
  return actor != nullptr && !actor->get()->getf(caf::abstract_actor::is_terminated_flag);
}

std::string_view cut(std::string_view text) {
  return text.substr(0, limits::error_text_bytes_max);
}

} // namespace

office_core::office_core(actor_runtime& runtime, transport& network, const codec_table& codecs,
                         post_office_settings settings)
    : runtime_{runtime}
    , network_{network}
    , codecs_{codecs}
    , settings_{settings}
    , body_room_(limits::envelope_bytes_max / sizeof(std::uint64_t))
    , envelope_room_(limits::envelope_bytes_max / sizeof(std::uint64_t)) {}

// -- Names --

expected<void> office_core::publish(std::string_view name, const caf::actor& who) {
  if (name.empty() || name.size() > limits::name_bytes_max)
    return error{errc::bad_argument, "actor name '" + std::string{name} + "' is empty or too long"};
  auto& entry = names_[std::string{name}];
  const auto actor = caf::actor_cast<caf::strong_actor_ptr>(who);
  if (entry.actor == actor) return {};
  if (alive(entry.actor))
    return error{errc::bad_argument, "actor name '" + std::string{name} + "' is taken by a living actor"};
  entry = {actor, {}};
  actor->get()->attach_functor(
      [link = weak_from_this(), key = std::string{name}, id = actor->id()](const caf::error& reason) {
        if (const auto self = link.lock()) self->name_ended(key, id, reason);
      });
  return {};
}

void office_core::withdraw(std::string_view name) {
  const auto place = names_.find(name);
  if (place == names_.end() || place->second.actor == nullptr) return;
  name_ended(place->first, place->second.actor->id(), caf::error{});
}

void office_core::name_ended(const std::string& name, caf::actor_id id, const caf::error& reason) {
  const auto place = names_.find(name);
  if (place == names_.end() || place->second.actor == nullptr || place->second.actor->id() != id) return;
  const auto released = std::exchange(place->second, published{nullptr, to_wire(reason)}); // goes last
  ended_names_.push_back(name);
  if (ended_names_.size() <= ended_names_max) return;
  const auto oldest = names_.find(ended_names_.front());
  if (oldest != names_.end() && oldest->second.actor == nullptr) names_.erase(oldest);
  ended_names_.pop_front();
}

// -- Handles --

caf::strong_actor_ptr office_core::make_proxy(remote_place place) {
  caf::actor_config config;
  auto& system = runtime_.system();
  return caf::make_actor<remote_proxy, caf::strong_actor_ptr>(system.next_actor_id(), system.node(), &system,
                                                              config, weak_from_this(), std::move(place));
}

caf::actor office_core::remote(incarnation_id peer, std::string_view name) {
  if (peer == network_.self()) {
    const auto place = names_.find(name);
    if (place != names_.end() && alive(place->second.actor))
      return caf::actor_cast<caf::actor>(place->second.actor);
  } else if (!lost_.contains(peer)) {
    auto& named = peers_[peer].named;
    const auto place = named.find(name);
    if (place != named.end()) return caf::actor_cast<caf::actor>(place->second);
    const auto proxy = make_proxy({peer, std::string{name}, caf::invalid_actor_id});
    named.emplace(name, proxy);
    open(proxy_of(proxy));
    return caf::actor_cast<caf::actor>(proxy);
  }
  const auto proxy = make_proxy({peer, std::string{name}, caf::invalid_actor_id});
  const auto code = peer == network_.self() ? errc::never_existed : errc::process_died;
  proxy_of(proxy).kill_proxy(nullptr, to_caf({code, "no actor '" + std::string{name} + "' there"}));
  return caf::actor_cast<caf::actor>(proxy);
}

caf::strong_actor_ptr office_core::return_proxy(incarnation_id peer, caf::actor_id id) {
  auto& slot = peers_[peer].returns[id];
  if (auto known = slot.lock()) return caf::strong_actor_ptr{known};
  auto proxy = make_proxy({peer, {}, id});
  slot = caf::weak_actor_ptr{proxy.get()};
  return proxy;
}

void office_core::forget(const remote_proxy& proxy) {
  const auto& place = proxy.place();
  const auto peer = peers_.find(place.peer);
  if (peer == peers_.end() || place.id == caf::invalid_actor_id) return;
  const auto slot = peer->second.returns.find(place.id);
  if (slot != peer->second.returns.end() && slot->second.get() == proxy.ctrl())
    peer->second.returns.erase(slot);
}

bool office_core::open(remote_proxy& proxy) {
  if (proxy.dead()) return false;
  if (proxy.channel() != 0) return true;
  proxy.set_channel(++last_channel_);
  const auto& place = proxy.place();
  peers_[place.peer].opened.emplace(proxy.channel(), caf::strong_actor_ptr{proxy.ctrl()});
  auto what = stamped(envelope_kind::open);
  what.target = proxy.channel();
  what.name = place.name;
  what.source = place.id;
  const auto sent = send(place.peer, what);
  if (!sent) kill(proxy, to_caf(sent.failure()));
  return sent.has_value();
}

remote_proxy* office_core::proxy_behind(const caf::actor& handle) {
  return dynamic_cast<remote_proxy*>(caf::actor_cast<caf::abstract_actor*>(handle));
}

std::uint64_t office_core::credit(const caf::actor& handle) const {
  const auto* proxy = proxy_behind(handle);
  const bool bounded = proxy != nullptr && !proxy->dead();
  return bounded ? proxy->credit(settings_.edge_messages_max) : settings_.edge_messages_max;
}

void office_core::when_ready(const caf::actor& handle, const caf::actor& who) {
  auto* proxy = proxy_behind(handle);
  const auto waits = caf::actor_cast<caf::strong_actor_ptr>(who);
  if (credit(handle) == 0 && proxy->waiting().size() < settings_.requests_max) {
    proxy->waiting().push_back(waits);
    return;
  }
  waits->enqueue(nullptr, caf::make_message_id(), caf::make_message(edge_ready{handle}), nullptr);
}

// CAF holds locks when it calls: act in a task of its own.
void office_core::link_later(remote_proxy& proxy, caf::actor_addr source, bool linked) {
  runtime_.loop().post([link = weak_from_this(), pointer = caf::strong_actor_ptr{proxy.ctrl()},
                        source = std::move(source), linked] {
    if (const auto self = link.lock()) self->send_link(proxy_of(pointer), source, linked);
  });
}

// -- What goes out --

envelope office_core::stamped(envelope_kind kind) const {
  envelope what;
  what.job = settings_.job;
  what.sender = network_.self();
  what.kind = kind;
  return what;
}

// Only what asks for something may be refused for want of room: an answer, or the end of something, is owed.
expected<void> office_core::carry(incarnation_id to, envelope_kind kind, std::span<const std::byte> bytes,
                                  bool urgent) {
  if (kind == envelope_kind::control && urgent) return network_.send_urgent(to, bytes);
  const bool asks = kind == envelope_kind::message || kind == envelope_kind::request;
  return asks ? network_.send(to, bytes) : network_.send_owed(to, bytes);
}

expected<void> office_core::send(incarnation_id to, const envelope& what, bool urgent) {
  const auto room = writable(envelope_room_);
  const auto used = encode(what, room);
  auto result = used ? carry(to, what.kind, room.first(*used), urgent) : expected<void>{used.failure()};
  probe<"office.not_sent">::when(!result);
  ++(result ? counters_.sent : counters_.unsent);
  return result;
}

void office_core::outgoing(remote_proxy& to, const caf::mailbox_element& what) {
  const auto& content = what.content();
  if (what.mid.is_response()) return send_answer(to, what);
  if (content.match_elements<caf::exit_msg>()) return send_exit(to, what);
  if (content.match_elements<undelivered>()) return send_undelivered(to, content.get_as<undelivered>(0));
  if (probe<"office.handle_dead">::when(!open(to))) return return_to_sender(what, to.cause(), 0);
  send_content(to, what);
}

void office_core::send_content(remote_proxy& to, const caf::mailbox_element& what) {
  if (probe<"office.no_credit">::when(to.credit(settings_.edge_messages_max) == 0)) // PO-7
    return return_to_sender(what, {errc::no_credit, "the actor has too many messages to handle"}, 0);
  const auto message = codecs_.encode(what.content(), writable(body_room_));
  if (!message) return return_to_sender(what, message.failure(), 0);
  auto out = stamped(envelope_kind::message);
  out.target = to.channel();
  out.source = exported(what.sender);
  out.type = message->type;
  out.body = message->body;
  if (message->generation_bound) out.generation = generation_;
  if (what.mid.is_request()) {
    out.kind = envelope_kind::request;
    out.correlation = begin_request(to, what);
    if (probe<"office.too_many_requests">::when(out.correlation == 0))
      return return_to_sender(what, {errc::no_credit, "too many requests under way to one process"},
                              out.type);
  }
  to.note_sent();
  const auto sent = send(to.place().peer, out);
  if (sent) return;
  to.take_back();
  if (what.mid.is_request())
    complete(out.correlation, caf::make_message(to_caf(sent.failure())));
  else
    return_to_sender(what, sent.failure(), out.type);
}

void office_core::send_answer(remote_proxy& to, const caf::mailbox_element& what) {
  const auto peer = to.place().peer;
  const auto correlation = what.mid.request_id().integer_value();
  const auto& content = what.content();
  if (content.match_elements<caf::error>()) {
    const auto& failure = content.get_as<caf::error>(0);
    return send_failure(peer, correlation, to_troupe(failure));
  }
  const auto message = codecs_.encode(content, writable(body_room_));
  if (!message) return send_failure(peer, correlation, message.failure());
  auto out = stamped(envelope_kind::response);
  out.correlation = correlation;
  out.type = message->type;
  out.body = message->body;
  const auto sent = send(peer, out);
  if (!sent && sent.failure().code == errc::too_large) send_failure(peer, correlation, sent.failure());
}

void office_core::send_failure(incarnation_id to, std::uint64_t correlation, const error& cause) {
  auto out = stamped(envelope_kind::failure);
  out.correlation = correlation;
  out.status = exit_status::of(cause.code);
  out.text = cut(cause.text);
  (void)send(to, out); // lost with its path: the requester's end knows (PO-2)
}

void office_core::send_exit(remote_proxy& to, const caf::mailbox_element& what) {
  if (!open(to)) return;
  const auto& exit = what.content().get_as<caf::exit_msg>(0);
  const auto reason = to_wire(exit.reason);
  auto out = stamped(envelope_kind::exit);
  out.target = to.channel();
  out.source = exit.source.id();
  out.status = reason.status;
  out.text = cut(reason.text);
  (void)send(to.place().peer, out);
}

void office_core::send_undelivered(remote_proxy& to, const undelivered& what) {
  auto out = stamped(envelope_kind::undelivered);
  out.target = to.place().id;
  out.type = what.type;
  out.status = exit_status::of(what.cause.code);
  out.text = cut(what.cause.text);
  if (out.target != caf::invalid_actor_id) (void)send(to.place().peer, out);
}

void office_core::send_link(remote_proxy& proxy, const caf::actor_addr& source, bool linked) {
  if (proxy.dead()) return;                                                     // CAF has sent the exit
  if (linked && !alive(caf::actor_cast<caf::strong_actor_ptr>(source))) return; // its exit has been sent
  if (!open(proxy)) return;
  auto out = stamped(linked ? envelope_kind::link : envelope_kind::unlink);
  out.target = proxy.channel();
  out.source = source.id();
  (void)send(proxy.place().peer, out);
}

// -- Local actors that others may answer --

std::uint64_t office_core::exported(const caf::strong_actor_ptr& sender) {
  if (sender == nullptr) return 0;
  const auto id = sender->id();
  const auto [place, fresh] = exports_.try_emplace(id, sender.get());
  if (fresh) {
    sender->get()->attach_functor([link = weak_from_this(), id](const caf::error&) {
      if (const auto self = link.lock()) self->exported_ended(id);
    });
  }
  return id;
}

void office_core::exported_ended(caf::actor_id id) {
  exports_.erase(id);
  drop_requests_by(id);
}

post_office_counters office_core::counters() const {
  auto result = counters_;
  result.requests = requests_.size();
  for (const auto& [id, peer] : peers_)
    result.proxies += peer.opened.size();
  return result;
}

expected<void> office_core::send_control(incarnation_id to, std::uint64_t type,
                                         std::span<const std::byte> body, bool urgent) {
  auto what = stamped(envelope_kind::control);
  what.type = type;
  what.body = body;
  return send(to, what, urgent);
}

} // namespace troupe
