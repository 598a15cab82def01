// Office core: what arrives from other processes.
#include <algorithm>
#include <utility>

#include <caf/make_message.hpp>
#include <caf/scheduled_actor.hpp>
#include <caf/system_messages.hpp>

#include "actors/remote/office_core.hpp"
#include "actors/system/errors.hpp"
#include "runtime/base/limits.hpp"
#include "runtime/base/planted_bug.hpp"
#include "runtime/base/probe.hpp"

namespace troupe {
namespace {

error cause_of(const wire_reason& reason) {
  return {exit_status::to_errc(reason.status), reason.text.empty() ? "the actor has ended" : reason.text};
}

} // namespace

void office_core::incoming(incarnation_id from, std::span<const std::byte> payload) {
  const auto decoded = decode(payload);
  if (!decoded) {
    ++counters_.corrupt;
    return;
  }
  const auto& what = *decoded;
  if (!acceptable(from, what)) return;
  ++counters_.received;
  switch (what.kind) {
  case envelope_kind::message:
  case envelope_kind::request:
    return on_content(from, what);
  case envelope_kind::response:
  case envelope_kind::failure:
    return on_answer(what);
  case envelope_kind::undelivered:
    return on_undelivered(what);
  case envelope_kind::open:
    return on_open(from, what);
  case envelope_kind::close:
    return on_close(from, what.target);
  case envelope_kind::down:
    return on_down(from, what);
  case envelope_kind::link:
  case envelope_kind::unlink:
    return on_link(from, what);
  case envelope_kind::exit:
    return on_exit(from, what);
  case envelope_kind::credit:
    return on_credit(from, what);
  case envelope_kind::control:
    if (control_) control_(from, what.type, what.body);
  }
}

// PO-4: the one place where stale messages end.
bool office_core::acceptable(incarnation_id from, const envelope& what) {
  if (what.job != settings_.job) {
    probe<"office.foreign_job">::hit();
    ++counters_.foreign_job;
    return false;
  }
  if (what.sender != from || (lost_.contains(from) && !TROUPE_PLANTED("office.dead_heard_again"))) {
    probe<"office.sender_stale">::hit();
    ++counters_.stale_sender;
    return false;
  }
  const bool unchecked = TROUPE_PLANTED("office.generation_unchecked");
  if (what.generation.value() != 0 && what.generation < generation_ && !unchecked) {
    probe<"office.generation_stale">::hit();
    ++counters_.stale_generation;
    bounce(from, what, {errc::stale_generation, "generation " + to_string(what.generation) + " has ended"});
    return false;
  }
  return true;
}

void office_core::on_content(incarnation_id from, const envelope& what) {
  auto& inbound = peers_[from].inbound;
  const auto channel = inbound.find(what.target);
  if (channel == inbound.end())
    return bounce(from, what, {errc::path_lost, "the path was lost since this handle was made"});
  const auto target = channel->second.target; // kept while its channel may change
  if (probe<"office.target_ended">::when(target == nullptr))
    return bounce(from, what, cause_of(channel->second.reason));
  const auto account = channel->second.account;
  if (!account->take()) return bounce(from, what, {errc::no_credit, "sent without credit"}); // PO-7
  if (probe<"office.mailbox_full">::when(!has_room(channel->second.scheduled))) {
    account->handled();
    return bounce(from, what, {errc::no_credit, "the actor's mailbox is full"});
  }
  auto message = codecs_.decode(what.type, what.body);
  if (!message) {
    account->handled();
    return bounce(from, what, message.failure());
  }
  const bool asks = what.kind == envelope_kind::request;
  const auto id = asks ? caf::make_message_id(what.correlation & caf::message_id::request_id_mask)
                       : caf::make_message_id();
  auto sender = what.source != 0 ? return_proxy(from, what.source) : nullptr;
  target->get()->enqueue(
      caf::mailbox_element_ptr{new edge_element{std::move(sender), id, std::move(*message), account}},
      nullptr);
}

void office_core::on_credit(incarnation_id from, const envelope& what) {
  const auto& opened = peers_[from].opened;
  const auto place = opened.find(what.target);
  if (place == opened.end()) return;
  const auto pointer = place->second; // what is told may end it
  auto& proxy = *static_cast<remote_proxy*>(pointer->get());
  proxy.allow(what.correlation, settings_.edge_messages_max);
  tell_waiting(proxy);
}

std::shared_ptr<edge_account> office_core::new_account(incarnation_id peer, std::uint64_t channel) {
  return std::make_shared<edge_account>(runtime_.loop(), settings_.edge_messages_max,
                                        [link = weak_from_this(), peer, channel](std::uint64_t allowed) {
                                          const auto self = link.lock();
                                          if (self == nullptr || !self->peers_.contains(peer)) return;
                                          auto out = self->stamped(envelope_kind::credit);
                                          out.target = channel;
                                          out.correlation = allowed;
                                          (void)self->send(peer,
                                                           out); // lost with its path, which ends the edge
                                        });
}

void office_core::bounce(incarnation_id to, const envelope& what, const error& cause) {
  ++counters_.bounced;
  if (probe<"office.request_refused">::when(what.kind == envelope_kind::request))
    return send_failure(to, what.correlation, cause);
  if (what.kind != envelope_kind::message || what.source == 0) return;
  probe<"office.message_bounced">::hit();
  if (TROUPE_PLANTED("office.bounce_lost")) return;
  auto out = stamped(envelope_kind::undelivered);
  out.target = what.source;
  out.correlation = what.target;
  out.type = what.type;
  out.status = exit_status::of(cause.code);
  out.text = cause.text;
  (void)send(to, out);
}

// A request completes with its handle, which the loss of the path ends.
void office_core::not_delivered(std::span<const std::byte> payload, const error& cause) {
  const auto decoded = decode(payload);
  if (!decoded || decoded->kind != envelope_kind::message) return;
  ++counters_.returned;
  const auto place = exports_.find(decoded->source);
  const auto sender = place != exports_.end() ? place->second.lock() : nullptr;
  if (sender == nullptr) return;
  sender->enqueue(nullptr, caf::make_message_id(), caf::make_message(undelivered{decoded->type, cause}),
                  nullptr);
}

bool office_core::has_room(caf::scheduled_actor* target) const {
  if (target == nullptr) return true;
  auto& mailbox = target->mailbox();
  // A blocked mailbox is empty, and must not be looked into.
  return mailbox.blocked() || mailbox.closed() || mailbox.size() < settings_.mailbox_messages_max;
}

void office_core::on_answer(const envelope& what) {
  if (what.kind == envelope_kind::failure)
    return complete(what.correlation,
                    caf::make_message(to_caf({exit_status::to_errc(what.status), std::string{what.text}})));
  auto message = codecs_.decode(what.type, what.body);
  if (!message) {
    ++counters_.corrupt;
    return complete(what.correlation, caf::make_message(to_caf(message.failure())));
  }
  complete(what.correlation, std::move(*message));
}

void office_core::on_undelivered(const envelope& what) {
  probe<"office.message_returned">::hit();
  ++counters_.returned;
  const auto place = exports_.find(what.target);
  const auto sender = place != exports_.end() ? place->second.lock() : nullptr;
  if (probe<"office.returned_to_nobody">::when(sender == nullptr)) return;
  undelivered back{what.type, {exit_status::to_errc(what.status), std::string{what.text}}};
  sender->enqueue(nullptr, caf::make_message_id(), caf::make_message(std::move(back)), nullptr);
}

// -- Channels --

office_core::published office_core::resolve(const envelope& open) const {
  static constexpr auto unknown = exit_status::of(errc::never_existed);
  if (open.name.empty()) {
    const auto place = exports_.find(open.source);
    auto actor = place != exports_.end() ? place->second.lock() : nullptr;
    if (actor == nullptr) return {nullptr, {exit_status::of(errc::actor_stopped), "the actor has ended"}};
    return {caf::strong_actor_ptr{actor}, {}};
  }
  const auto place = names_.find(open.name);
  if (place != names_.end()) return place->second;
  return {nullptr, {unknown, "no actor '" + std::string{open.name} + "' there"}};
}

void office_core::on_open(incarnation_id from, const envelope& what) {
  auto& inbound = peers_[from].inbound;
  if (inbound.contains(what.target)) {
    ++counters_.corrupt; // a channel is opened once
    return;
  }
  auto found = inbound.size() < settings_.channels_max // PO-5
                   ? resolve(what)
                   : published{nullptr, {exit_status::of(errc::no_credit), "too many handles"}};
  auto* actor = found.actor != nullptr ? found.actor->get() : nullptr;
  inbound.emplace(what.target, inbound_channel{found.actor, found.reason, new_account(from, what.target),
                                               dynamic_cast<caf::scheduled_actor*>(actor)});
  if (probe<"office.opened_in_vain">::when(found.actor == nullptr)) {
    auto out = stamped(envelope_kind::down);
    out.target = what.target;
    out.status = found.reason.status;
    out.text = found.reason.text;
    (void)send(from, out);
    return;
  }
  found.actor->get()->attach_functor(
      [link = weak_from_this(), from, channel = what.target](const caf::error& reason) {
        if (const auto self = link.lock()) self->target_ended(from, channel, reason);
      });
}

void office_core::target_ended(incarnation_id peer, std::uint64_t channel, const caf::error& reason) {
  const auto entry = peers_.find(peer);
  if (entry == peers_.end()) return;
  const auto place = entry->second.inbound.find(channel);
  if (place == entry->second.inbound.end() || place->second.target == nullptr) return;
  std::erase_if(entry->second.links, [&](const inbound_link& each) { return each.channel == channel; });
  probe<"office.opened_actor_ended">::hit();
  const auto ended = std::move(place->second.target);
  place->second.account->close();
  place->second = {nullptr, to_wire(reason),
                   nullptr}; // stays until the peer closes it: late messages learn why
  auto out = stamped(envelope_kind::down);
  out.target = channel;
  out.status = place->second.reason.status;
  out.text = place->second.reason.text;
  (void)send(peer, out);
}

void office_core::on_close(incarnation_id from, std::uint64_t channel) {
  auto& entry = peers_[from];
  std::erase_if(entry.links, [&](const inbound_link& each) { return each.channel == channel; });
  const auto node = entry.inbound.extract(channel); // its reference goes last
  if (!node.empty() && node.mapped().account) node.mapped().account->close();
}

void office_core::on_down(incarnation_id from, const envelope& what) {
  auto out = stamped(envelope_kind::close);
  out.target = what.target;
  (void)send(from, out);
  auto& opened = peers_[from].opened;
  const auto place = opened.find(what.target);
  if (place == opened.end()) return;
  probe<"office.handle_ended">::hit();
  const auto pointer = place->second;
  kill(*static_cast<remote_proxy*>(pointer->get()), from_wire(what.status, what.text));
}

// -- Links --

void office_core::on_link(incarnation_id from, const envelope& what) {
  auto& entry = peers_[from];
  const auto matches = [&](const inbound_link& each) {
    return each.channel == what.target &&
           static_cast<remote_proxy*>(each.source->get())->place().id == what.source;
  };
  std::erase_if(entry.links, matches);
  const auto channel = entry.inbound.find(what.target);
  if (what.kind == envelope_kind::unlink || channel == entry.inbound.end()) return;
  if (channel->second.target == nullptr) return; // its down is on the way
  entry.links.push_back({return_proxy(from, what.source), what.target});
}

void office_core::on_exit(incarnation_id from, const envelope& what) {
  auto& entry = peers_[from];
  const auto channel = entry.inbound.find(what.target);
  if (channel == entry.inbound.end() || channel->second.target == nullptr) return;
  const auto target = channel->second.target;
  std::erase_if(entry.links, [&](const inbound_link& each) {
    return each.channel == what.target &&
           static_cast<remote_proxy*>(each.source->get())->place().id == what.source;
  });
  caf::actor_addr source;
  if (what.source != 0) source = return_proxy(from, what.source)->address();
  target->enqueue(nullptr, caf::make_message_id(),
                  caf::make_message(caf::exit_msg{source, from_wire(what.status, what.text)}), nullptr);
}

} // namespace troupe
