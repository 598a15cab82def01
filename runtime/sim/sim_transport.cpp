#include "runtime/sim/sim_transport.hpp"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "runtime/base/limits.hpp"

namespace troupe {
namespace {

constexpr std::size_t address_bytes = 2 * sizeof(std::uint64_t);
constexpr std::byte late_byte{0xAB};
constexpr std::byte flipped_bit{0x10};

error no_path(incarnation_id peer) {
  return {errc::path_lost, "no path to " + to_string(peer)};
}

std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

} // namespace

sim_transport::sim_transport(sim_network& network, sim_process& owner, incarnation_id self)
    : network_{network}
    , owner_{owner}
    , self_{self} {
  network_.ends_[self] = {this, &owner};
  network_.world_.on_end(owner.pid(), [&network, self](const process_exit& how) { network.lost(self, how); });
}

sim_transport::~sim_transport() {
  network_.ends_[self_].transport = nullptr;
}

peer_address sim_transport::local_address() const {
  peer_address address(address_bytes);
  const std::uint64_t words[2]{self_.high(), self_.low()};
  std::memcpy(address.data(), words, address_bytes);
  return address;
}

// --- paths ----------------------------------------------------------------------------------------------

expected<void> sim_transport::connect(incarnation_id peer, const peer_address& address) {
  if (!peer.valid() || peer == self_ || address.size() != address_bytes)
    return error{errc::bad_argument, "connect to " + to_string(peer) + ": needs another process's address"};
  if (closed_.contains(peer)) return no_path(peer);
  if (!owner_.alive() || peers_.contains(peer)) return {};
  open_path(peer, 0);
  if (network_.find(peer) == nullptr) notice_loss(peer, errc::refused, "nobody is there");
  return {};
}

void sim_transport::open_path(incarnation_id peer, std::uint64_t answers) {
  const auto number = ++last_path_;
  peers_[peer] = path{.number = number, .theirs = answers};
  if (network_.parted(self_, peer)) return notice_loss(peer, errc::path_lost, "there is no way");
  network_.deliver(self_, peer, [&net = network_, from = self_, to = peer, number, answers] {
    if (auto* other = net.find(to)) other->accept(from, number, answers);
  });
}

// A newer path of the peer's says that the one we have has failed at the other end; an answer to a path that
// we have no more says nothing.
void sim_transport::accept(incarnation_id from, std::uint64_t number, std::uint64_t answers) {
  if (closed_.contains(from)) return;
  auto known = peers_.find(from);
  if (answers != 0 && (known == peers_.end() || known->second.number != answers)) return;
  if (known != peers_.end() && known->second.theirs != 0) {
    if (number <= known->second.theirs) return;
    lose(from, {errc::path_lost, "the peer opened a new path"});
    known = peers_.find(from); // the listener may have connected
  }
  if (known == peers_.end())
    open_path(from, answers == 0 ? number : 0); // ours was just lost: what answers it is of no use
  else
    known->second.theirs = number; // it was connected to from here, too
  if (network_.find(from) == nullptr) notice_loss(from, errc::path_lost, "the peer is gone"); // meanwhile
}

void sim_transport::close(incarnation_id peer) {
  if (!owner_.alive() || peers_.erase(peer) == 0) return; // SN-1
  closed_.insert(peer);
  fail_transfers(peer, {errc::aborted, "the path was closed"});
  network_.deliver(self_, peer, [&net = network_, from = self_, to = peer] {
    auto* other = net.find(to);
    if (other == nullptr) return;
    other->closed_.insert(from);
    other->lose(from, {errc::actor_stopped, "the peer said goodbye"});
  });
}

void sim_transport::drop(incarnation_id peer) {
  const auto known = peers_.find(peer);
  if (!owner_.alive() || known == peers_.end()) return; // SN-1
  const auto number = known->second.number;
  peers_.erase(known);
  fail_transfers(peer, {errc::path_lost, "the path was dropped"});
  network_.deliver(self_, peer, [&net = network_, from = self_, to = peer, number] {
    auto* other = net.find(to);
    if (other == nullptr) return;
    const auto there = other->peers_.find(from);
    if (there != other->peers_.end() && there->second.theirs == number)
      other->lose(from, {errc::path_lost, "the path failed at the other end"});
  });
}

void sim_transport::lose(incarnation_id peer, const error& cause) {
  if (peers_.erase(peer) == 0) return;
  fail_transfers(peer, cause);
  if (listener_ != nullptr) listener_->on_path_lost(peer, cause);
}

// Of the path that there is now; a later one is another matter.
void sim_transport::notice_loss(incarnation_id peer, errc code, std::string cause) {
  const auto known = peers_.find(peer);
  if (known == peers_.end()) return;
  const auto& settings = network_.settings_;
  auto delay = network_.world_.draw_between(settings.loss_notice_min, settings.loss_notice_max);
  const auto other = network_.ends_.find(peer);
  if (other != network_.ends_.end()) delay += network_.delay(*other->second.owner, owner_);
  network_.world_.schedule(delay, &owner_.loop,
                           [&net = network_, self = self_, peer, number = known->second.number,
                            why = std::make_unique<error>(error{code, std::move(cause)})] {
                             if (auto* me = net.find(self)) me->notice(peer, number, *why);
                           });
}

void sim_transport::notice(incarnation_id peer, std::uint64_t number, const error& cause) {
  const auto known = peers_.find(peer);
  if (known != peers_.end() && known->second.number == number) lose(peer, cause);
}

// --- messages -------------------------------------------------------------------------------------------

expected<void> sim_transport::send(incarnation_id peer, std::span<const std::byte> payload) {
  if (payload.size() > limits::payload_bytes_max)
    return error{errc::too_large, "a message of " + std::to_string(payload.size()) + " bytes; at most " +
                                      std::to_string(limits::payload_bytes_max) + " fit"};
  if (!owner_.alive()) return {}; // SN-1
  const auto known = peers_.find(peer);
  if (known == peers_.end()) return no_path(peer);
  auto& in_flight = known->second.in_flight;
  if (in_flight + payload.size() > network_.settings_.in_flight_bytes_max)
    return error{errc::no_credit, "too many bytes on their way to " + to_string(peer)};
  if (network_.find(peer) == nullptr) return {}; // proves nothing: the loss will be noticed
  in_flight += payload.size();
  auto copy = std::make_unique<std::vector<std::uint64_t>>((payload.size() + 7) / 8); // aligned
  std::memcpy(copy->data(), payload.data(), payload.size());
  ++network_.messages_;
  network_.world_.trace(stream_of("message"), stream_of(text_of(payload)));
  network_.deliver(self_, peer,
                   [&net = network_, from = self_, to = peer, number = known->second.number,
                    size = payload.size(), held = std::move(copy)] {
                     if (auto* sender = net.find(from)) sender->sent(to, number, size);
                     if (auto* other = net.find(to))
                       other->receive(from, number, std::as_bytes(std::span{*held}).first(size));
                   });
  return {};
}

void sim_transport::sent(incarnation_id to, std::uint64_t number, std::size_t bytes) {
  const auto known = peers_.find(to);
  if (known != peers_.end() && known->second.number == number) known->second.in_flight -= bytes;
}

void sim_transport::receive(incarnation_id from, std::uint64_t number, std::span<const std::byte> payload) {
  const auto known = peers_.find(from);
  if (known == peers_.end() || known->second.theirs != number) return; // TR-2
  if (listener_ != nullptr) listener_->on_message(from, payload);
}

// --- bulk -----------------------------------------------------------------------------------------------

void sim_transport::send_bulk(incarnation_id peer, std::uint64_t transfer, std::span<const std::byte> bytes,
                              bulk_done done) {
  if (!owner_.alive()) return; // SN-1
  if (!peers_.contains(peer)) return done(no_path(peer));
  if (bytes.empty() || bytes.size() > limits::bulk_bytes_max)
    return done(error{errc::bad_argument, "a transfer of " + std::to_string(bytes.size()) + " bytes"});
  const auto id = next_bulk_++;
  outgoing_.emplace(id, outgoing{peer, transfer, bytes, std::move(done)});
  const auto number = peers_.at(peer).number;
  network_.deliver(self_, peer, [&net = network_, from = self_, to = peer, number, id] {
    if (auto* other = net.find(to)) other->announced(from, number, id);
  });
}

// The first half arrives with the announcement, the rest at the end: what is torn is seen to be torn.
void sim_transport::announced(incarnation_id from, std::uint64_t number, std::uint64_t id) {
  auto* sender = network_.find(from); // a dead sender's memory is gone
  const auto known = peers_.find(from);
  if (known == peers_.end() || known->second.theirs != number) return;
  if (sender == nullptr || !sender->outgoing_.contains(id)) return;
  const auto& what = sender->outgoing_.at(id);
  const auto bytes = what.bytes;
  const auto transfer = what.transfer;
  const auto into = listener_ == nullptr ? std::span<std::byte>{}
                                         : listener_->on_bulk_announced(from, {transfer, bytes.size()});
  if (into.empty()) return answer_bulk(from, id, error{errc::refused, "the receiver refused the transfer"});
  invariant(into.size() == bytes.size(), "the listener lends exactly what was announced");
  incoming_[{from, id}] = {transfer, into};
  std::memcpy(into.data(), bytes.data(), bytes.size() / 2);
  const auto& settings = network_.settings_;
  const auto wire = static_cast<double>(bytes.size()) * 1e9 / settings.bulk_bytes_per_s;
  const auto latency = network_.world_.draw_between(duration{0}, settings.bulk_latency_max);
  network_.world_.schedule(duration{static_cast<duration::rep>(wire)} + latency, &owner_.loop,
                           [&net = network_, self = self_, from, id] {
                             if (auto* me = net.find(self)) me->arrived(from, id);
                           });
}

void sim_transport::arrived(incarnation_id from, std::uint64_t id) {
  const auto found = incoming_.find({from, id});
  if (found == incoming_.end()) return; // given back when the path was lost
  auto* sender = network_.find(from);
  if (sender == nullptr || !sender->outgoing_.contains(id)) return; // the loss of the path will tell
  auto& world = network_.world_;
  const auto free = world.hosts().uncut(sender->owner_.host(), owner_.host(), world.now());
  if (free > world.now()) { // something came between them meanwhile
    world.schedule(free - world.now(), &owner_.loop, [&net = network_, self = self_, from, id] {
      if (auto* me = net.find(self)) me->arrived(from, id);
    });
    return;
  }
  const auto bytes = sender->outgoing_.at(id).bytes;
  const auto what = found->second;
  incoming_.erase(found);
  std::memcpy(what.into.data(), bytes.data(), bytes.size());
  if (network_.damages_left_ > 0) {
    --network_.damages_left_;
    what.into[world.draw(what.into.size())] ^= flipped_bit;
  }
  if (listener_ != nullptr) listener_->on_bulk_received(from, what.transfer, {});
  answer_bulk(from, id, {});
}

void sim_transport::answer_bulk(incarnation_id sender, std::uint64_t id, expected<void> result) {
  auto held = std::make_unique<expected<void>>(std::move(result));
  network_.deliver(self_, sender, [&net = network_, sender, id, answer = std::move(held)] {
    if (auto* back = net.find(sender)) back->finish(id, std::move(*answer));
  });
}

void sim_transport::finish(std::uint64_t id, expected<void> result) {
  const auto node = outgoing_.extract(id);
  if (!node.empty()) node.mapped().done(std::move(result)); // TR-3
}

// What is under way with a peer ends with the path, both ways.
void sim_transport::fail_transfers(incarnation_id peer, const error& cause) {
  auto ended = std::make_shared<ended_path>(ended_path{peer, {}, {}, {errc::path_lost, cause.text}});
  for (const auto& [id, one] : outgoing_) {
    if (one.to == peer) ended->sends.push_back(id);
  }
  for (auto it = incoming_.begin(); it != incoming_.end();) {
    const bool ours = it->first.first == peer;
    if (ours) ended->receipts.push_back(it->second);
    it = ours ? incoming_.erase(it) : std::next(it);
  }
  const auto late = network_.settings_.late_completion_max;
  if (late == duration{0}) return settle(*ended);
  network_.world_.schedule(network_.world_.draw_between(duration{1}, late), &owner_.loop,
                           [&net = network_, self = self_, ended] {
                             if (auto* me = net.find(self)) me->settle(*ended);
                           });
}

void sim_transport::settle(const ended_path& what) {
  for (const auto id : what.sends)
    finish(id, what.cause);
  for (const auto& one : what.receipts) {
    std::ranges::fill(one.into.subspan(one.into.size() / 2), late_byte); // the hardware may write until now
    if (listener_ != nullptr) listener_->on_bulk_received(what.peer, one.transfer, what.cause);
  }
}

} // namespace troupe
