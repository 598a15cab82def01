// The engine's frames: handshake, messages, goodbye.
#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <utility>

#include "transports/ucx/engine.hpp"

namespace troupe {
namespace {

constexpr unsigned am_frames = 1;
constexpr std::size_t payload_alignment = 8;

template <class T>
std::span<const std::byte> bytes_of(const T& value) {
  return std::as_bytes(std::span{&value, 1});
}

} // namespace

// --- out ---

// The frame of `first` followed by `second`; nothing when the pool is empty and the frame is not owed.
send_slot* ucx_engine::make_frame(ucx_connection& path, frame_kind kind, std::span<const std::byte> first,
                                  std::span<const std::byte> second, bool owed) {
  auto* slot = pool_.try_take(sizeof(frame_header) + first.size() + second.size(), owed);
  if (slot == nullptr) return nullptr;
  const bool handshake = kind == frame_kind::hello || kind == frame_kind::hello_ack;
  const auto sequence = handshake ? 0 : path.next_send++;
  const auto header = make_frame_header(kind, job_, self_, path.id, sequence);
  auto* at = slot->memory.data();
  std::memcpy(at, &header, sizeof(header));
  at += sizeof(header);
  if (!first.empty()) std::memcpy(at, first.data(), first.size());
  if (!second.empty()) std::memcpy(at + first.size(), second.data(), second.size());
  slot->owner = &path;
  path.in_flight_bytes += slot->bytes;
  return slot;
}

expected<void> ucx_engine::send(incarnation_id peer, std::span<const std::byte> payload) {
  if (payload.size() > limits::payload_bytes_max)
    return error{errc::too_large, "a message of " + std::to_string(payload.size()) + " bytes; at most " +
                                      std::to_string(limits::payload_bytes_max) + " fit"};
  auto* path = find(peer);
  if (path == nullptr || path->close_wanted || path->state > path_state::open)
    return error{errc::path_lost, "no path to " + to_string(peer).substr(0, 8)};
  auto* slot = path->in_flight_bytes + payload.size() > settings_.in_flight_bytes_max
                   ? nullptr
                   : make_frame(*path, frame_kind::message, payload, {}, false);
  if (slot == nullptr)
    return error{errc::no_credit, "too many bytes on their way to " + to_string(peer).substr(0, 8)};
  ++counters_.messages_sent;
  counters_.bytes_sent += payload.size();
  submit(*path, slot);
  return {};
}

void ucx_engine::submit(ucx_connection& path, send_slot* slot) {
  if (path.state == path_state::open) {
    post(slot);
    return;
  }
  (path.queue_last == nullptr ? path.queue_first : path.queue_last->next) = slot;
  path.queue_last = slot;
}

void ucx_engine::post(send_slot* slot, std::uint32_t attributes) {
  ucp_request_param_t params{};
  params.op_attr_mask =
      attributes | UCP_OP_ATTR_FIELD_FLAGS | UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
  params.flags = UCP_AM_SEND_FLAG_EAGER;
  params.cb.send = &ucx_engine::on_frame_sent;
  params.user_data = slot;
  ++slot->owner->sends_out;
  auto* request = ucp_am_send_nbx(slot->owner->endpoint, am_frames, nullptr, 0, slot->memory.data(),
                                  slot->bytes, &params);
  if (UCS_PTR_IS_PTR(request))
    kick();
  else
    sent(slot, UCS_PTR_STATUS(request));
}

void ucx_engine::on_frame_sent(void* request, ucs_status_t status, void* argument) {
  auto* slot = static_cast<send_slot*>(argument);
  slot->owner->engine->sent(slot, status);
  ucp_request_free(request);
}

void ucx_engine::sent(send_slot* slot, ucs_status_t status) {
  auto& path = *slot->owner;
  --path.sends_out;
  release(path, slot);
  if (path.state == path_state::draining) return;
  if (status != UCS_OK) lose_later(path, "sending", status);
  if (path.state == path_state::connecting) open_later(path);
}

void ucx_engine::flush_queue(ucx_connection& path) {
  while (path.queue_first != nullptr) {
    auto* slot = path.queue_first;
    path.queue_first = std::exchange(slot->next, nullptr);
    post(slot);
  }
  path.queue_last = nullptr;
}

void ucx_engine::drop_queue(ucx_connection& path) {
  if (path.hello != nullptr) release(path, std::exchange(path.hello, nullptr));
  while (path.queue_first != nullptr)
    release(path, std::exchange(path.queue_first, path.queue_first->next));
  path.queue_last = nullptr;
}

void ucx_engine::release(ucx_connection& path, send_slot* slot) {
  path.in_flight_bytes -= slot->bytes;
  pool_.give_back(slot);
}

void ucx_engine::make_hello(ucx_connection& path) {
  const hello_body body{
      .to_high = path.peer.high(),
      .to_low = path.peer.low(),
      .answers = path.theirs,
      .heard = newest_heard(path.peer),
      .proof = prove_hello(
          secret_,
          {.job = job_, .from = self_, .to = path.peer, .path = path.id, .address = worker_->address()})};
  path.hello = make_frame(path, frame_kind::hello, bytes_of(body), worker_->address(), true);
}

// True once UCX has taken our hello. Lanes that are not tcp do not carry it at once: there UCX holds it until
// it has wired the endpoint up.
bool ucx_engine::greet(ucx_connection& path) {
  if (settings_.transports != "tcp") {
    post(std::exchange(path.hello, nullptr));
  } else {
    ucp_request_param_t params{};
    params.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS | UCP_OP_ATTR_FLAG_FORCE_IMM_CMPL;
    params.flags = UCP_AM_SEND_FLAG_EAGER;
    const auto* taken = ucp_am_send_nbx(path.endpoint, am_frames, nullptr, 0, path.hello->memory.data(),
                                        path.hello->bytes, &params);
    const auto status = UCS_PTR_STATUS(taken);
    if (status == UCS_ERR_NO_RESOURCE) return false; // not connected
    ++path.sends_out;
    sent(std::exchange(path.hello, nullptr), status);
  }
  answer(path);
  return true;
}

// Confirms their hello, once ours is on its way: what they send back to UCX's wire-up never waits for a
// connection (UX-8).
void ucx_engine::answer(ucx_connection& path) {
  if (path.hello != nullptr || std::exchange(path.confirmed, path.theirs) == path.theirs) return;
  const ack_body body{.path = path.theirs};
  post(make_frame(path, frame_kind::hello_ack, bytes_of(body), {}, true), UCP_OP_ATTR_FLAG_NO_IMM_CMPL);
}

void ucx_engine::open_later(ucx_connection& path) {
  later([this, id = path.id] {
    if (auto* ready = find(id)) open_when_heard(*ready);
  });
}

void ucx_engine::send_owed(ucx_connection& path, frame_kind kind, std::span<const std::byte> body) {
  submit(path, make_frame(path, kind, body, {}, true));
}

// --- in ---

ucs_status_t ucx_engine::on_frame(void* engine, const void*, std::size_t, void* data, std::size_t bytes,
                                  const ucp_am_recv_param_t* param) {
  auto& self = *static_cast<ucx_engine*>(engine);
  if ((param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) != 0) {
    self.count_fault(frame_fault::malformed); // `data` is a descriptor, and dropped
    return UCS_ERR_UNSUPPORTED;
  }
  self.receive({static_cast<const std::byte*>(data), bytes});
  return UCS_OK;
}

void ucx_engine::count_fault(frame_fault fault) {
  if (fault == frame_fault::malformed)
    ++counters_.dropped_malformed;
  else
    ++counters_.dropped_stale;
}

// Who learns its job from a rendezvous may be greeted before that answer has reached it: the two travel on
// different ways. A hello is sent once, so it is kept.
void ucx_engine::set_job(job_id job, const path_secret& secret) {
  job_ = job;
  secret_ = secret;
  if (early_.empty()) return;
  later([this] {
    for (const auto& bytes : std::exchange(early_, {}))
      receive(bytes);
  });
}

void ucx_engine::receive(std::span<const std::byte> bytes) {
  if (!job_.valid() && early_.size() < limits::ucx_early_frames_max) {
    if (bytes.size() > limits::ucx_early_frame_bytes_max)
      count_fault(frame_fault::malformed);
    else
      early_.emplace_back(bytes.begin(), bytes.end());
    return;
  }
  auto fault = frame_fault::none;
  const auto frame = read_frame(bytes, job_, fault);
  if (!frame) {
    count_fault(fault);
    return;
  }
  if (frame->kind == frame_kind::hello) {
    receive_hello(*frame);
    return;
  }
  auto* path = find(frame->from);
  if (path == nullptr || stopped_) {
    ++counters_.dropped_stale;
    return;
  }
  if (frame->kind == frame_kind::hello_ack) {
    const auto body = read_body<ack_body>(frame->body);
    if (!body || body->path != path->id) { // of an earlier path
      ++counters_.dropped_stale;
      return;
    }
    path->confirmed_by = std::max(path->confirmed_by, frame->path);
    open_later(*path);
    return;
  }
  if (path->theirs == 0 || path->theirs != frame->path)
    ++counters_.dropped_stale;
  else
    receive_on_path(*path, *frame);
}

void ucx_engine::receive_on_path(ucx_connection& path, const frame_view& frame) {
  if (frame.sequence != path.next_receive) {
    ++counters_.dropped_malformed;
    lose_later(path, "a frame came out of order", UCS_ERR_INVALID_PARAM);
    return;
  }
  ++path.next_receive;
  if (frame.kind == frame_kind::goodbye) {
    receive_goodbye(path);
    return;
  }
  if (path.close_wanted || path.state > path_state::open) return; // TR-2
  if (frame.kind == frame_kind::message) {
    receive_message(path, frame.body);
    return;
  }
  const auto body = read_body<bulk_body>(frame.body);
  if (!body)
    ++counters_.dropped_malformed;
  else if (frame.kind == frame_kind::bulk_announce)
    receive_announcement(path, *body);
  else
    receive_bulk_answer(path, frame.kind, *body);
}

void ucx_engine::receive_message(ucx_connection& path, std::span<const std::byte> payload) {
  if (payload.size() > limits::payload_bytes_max) {
    ++counters_.dropped_malformed;
    return;
  }
  ++counters_.messages_received;
  counters_.bytes_received += payload.size();
  if (reinterpret_cast<std::uintptr_t>(payload.data()) % payload_alignment != 0) {
    std::memcpy(aligned_.bytes().data(), payload.data(), payload.size());
    payload = aligned_.bytes().first(payload.size());
  }
  if (listener_ != nullptr) listener_->on_message(path.peer, payload);
}

void ucx_engine::receive_goodbye(ucx_connection& path) {
  later([this, id = path.id] {
    auto* left = find(id);
    if (left == nullptr || left->state == path_state::draining) return;
    if (left->state == path_state::lingering) { // both have said it
      drain(*left);
      return;
    }
    ++counters_.goodbyes_received;
    left->ended_for_good = true;
    if (!left->close_wanted)
      left->loss = error{errc::actor_stopped, to_string(left->peer).substr(0, 8) + " said goodbye"};
    if (receiving(*left)) { // what it was sending never comes
      drain(*left);
      return;
    }
    left->close_wanted = true;
    say_goodbye(*left);
    announce_loss(*left);
  });
}

// A hello makes its sender reachable: the endpoint back is made outside of the callback (UX-5).
void ucx_engine::receive_hello(const frame_view& frame) {
  const auto body = read_body<hello_body>(frame.body);
  const auto address_bytes = frame.body.size() - std::min(frame.body.size(), sizeof(hello_body));
  if (!body || address_bytes == 0 || address_bytes > limits::ucx_address_bytes_max) {
    ++counters_.dropped_malformed;
    return;
  }
  const bool for_us = incarnation_id{body->to_high, body->to_low} == self_ && frame.from != self_;
  if (!for_us || dead_.contains(frame.from) || hellos_waiting_ >= limits::ucx_hellos_waiting_max ||
      stopped_) {
    ++counters_.dropped_stale;
    return;
  }
  const auto address = frame.body.subspan(sizeof(hello_body));
  if (!proves(body->proof, secret_,
              {.job = job_, .from = frame.from, .to = self_, .path = frame.path, .address = address})) {
    ++counters_.dropped_unproved; // UX-6
    return;
  }
  ++hellos_waiting_;
  const proved_hello said{frame.from, frame.path, body->answers, body->heard};
  later([this, said, copy = peer_address{address.begin(), address.end()}]() mutable {
    --hellos_waiting_;
    answer_hello(said, std::move(copy));
  });
}

// The peer's paths have ascending numbers: one that is not newer than what was heard is late, and so is an
// answer to a path that we have no more (UX-3). A newer one that answers nothing says that its path before
// has failed: so has ours, if that was its other end, or if only that one heard our hello.
void ucx_engine::answer_hello(const proved_hello& said, peer_address address) {
  if (stopped_) return;
  auto* path = find(said.from);
  const bool late = said.answers != 0 && (path == nullptr || path->id != said.answers);
  if (late || dead_.contains(said.from) || said.path <= newest_heard(said.from)) {
    ++counters_.dropped_stale;
    return;
  }
  note_heard(said.from, said.path);
  const bool failed = path != nullptr && said.answers == 0 && (path->theirs != 0 || path->id <= said.heard);
  if (failed && path->state <= path_state::open)
    lose(*path, error{errc::path_lost, to_string(said.from).substr(0, 8) + " opened a new path"});
  for (std::size_t at = 0; at < draining_.size();
       ++at) // no word of a new path before the loss of the old one
    if (draining_[at]->peer == said.from) tell_loss(*draining_[at]);
  if (stopped_) return;
  path = find(said.from); // the listener may have connected
  if (path == nullptr) {
    if (connections_.size() >= limits::ucx_peers_max) {
      ++counters_.dropped_stale;
      return;
    }
    path = &add_connection(said.from, std::move(address));
  }
  if (path->state != path_state::connecting) return; // it is being closed
  path->theirs = said.path;
  begin(*path);
  if (path->state == path_state::connecting) answer(*path);
}

void ucx_engine::note_heard(incarnation_id from, std::uint64_t number) {
  if (heard_.size() >= limits::ucx_dead_incarnations_max)
    std::erase_if(heard_, [this](const auto& each) { return !by_peer_.contains(each.first); });
  heard_.insert_or_assign(from, number);
}

std::uint64_t ucx_engine::newest_heard(incarnation_id from) const {
  const auto found = heard_.find(from);
  return found == heard_.end() ? 0 : found->second;
}

} // namespace troupe
