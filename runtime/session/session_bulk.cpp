// Session transport: bulk transfers, which begin again when a path cut them short (SE-5).
#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "runtime/base/probe.hpp"
#include "runtime/session/session_transport.hpp"

namespace troupe {
namespace {

constexpr duration refusal_pause{std::chrono::milliseconds{10}};

} // namespace

// --- outward --------------------------------------------------------------------------------------------

void session_transport::send_bulk(incarnation_id peer, std::uint64_t transfer,
                                  std::span<const std::byte> bytes, bulk_done done) {
  const auto to = find(peer);
  if (to == nullptr) return done(error{errc::path_lost, "no path to " + to_string(peer).substr(0, 8)});
  if (bytes.size() > limits::bulk_bytes_max)
    return done(error{errc::too_large, "a transfer of " + std::to_string(bytes.size()) + " bytes; at most " +
                                           std::to_string(limits::bulk_bytes_max)});
  const auto others =
      std::ranges::count_if(outgoing_, [&](const auto& each) { return each.first.first == peer; });
  if (static_cast<std::size_t>(others) >= limits::session_transfers_max)
    return done(error{errc::no_credit, "too many transfers to " + to_string(peer).substr(0, 8)});
  const transfer_key key{peer, transfer};
  if (bytes.empty() || outgoing_.contains(key))
    return done(error{errc::bad_argument, "transfer " + std::to_string(transfer) + " is empty or under way"});
  outgoing_.emplace(
      key, std::make_shared<outgoing_transfer>(outgoing_transfer{.bytes = bytes, .done = std::move(done)}));
  if (to->state != path_state::down) submit(peer, transfer);
}

void session_transport::submit(incarnation_id peer, std::uint64_t transfer) {
  const auto what = outgoing_.at({peer, transfer});
  what->held = true;
  if (what->tries++ > 0) ++counters_.transfers_again;
  inner_.send_bulk(peer, transfer, what->bytes,
                   [weak = std::weak_ptr{handle_}, what, peer, transfer](expected<void> result) {
                     if (const auto self = weak.lock())
                       (*self)->settled(peer, transfer, std::move(result));
                     else
                       what->done(std::move(result));
                   });
}

// The transport below is done with it, one way or the other.
void session_transport::settled(incarnation_id peer, std::uint64_t transfer, expected<void> result) {
  const transfer_key key{peer, transfer};
  const auto found = outgoing_.find(key);
  if (found == outgoing_.end()) return;
  auto& what = *found->second;
  what.held = false;
  const auto to = find(peer);
  if (result || what.received) return finish(key, {});
  const auto code = result.failure().code;
  if (to == nullptr || (code == errc::refused && what.tries <= 1)) return finish(key, result);
  if (code != errc::refused && code != errc::path_lost && code != errc::aborted) return finish(key, result);
  probe<"session.transfer_cut_short">::hit();
  if (to->state != path_state::open) return; // begins again with the path
  // The path is a new one already, or the peer's transport has not let go of the place yet.
  clock_.call_after(refusal_pause, guarded([peer, transfer](session_transport& self) {
                      const auto again = self.find(peer);
                      const auto waiting = self.outgoing_.find({peer, transfer});
                      if (again == nullptr || waiting == self.outgoing_.end()) return;
                      if (again->state == path_state::open && !waiting->second->held)
                        self.submit(peer, transfer);
                    }));
}

void session_transport::finish(transfer_key which, const expected<void>& result) {
  auto node = outgoing_.extract(which);
  if (!node.empty()) node.mapped()->done(result); // TR-3
}

// A path has opened: what was cut short begins again.
void session_transport::submit_all(session& to) {
  std::vector<std::uint64_t> waiting;
  for (const auto& [key, what] : outgoing_)
    if (key.first == to.peer && !what->held) waiting.push_back(key.second);
  for (const auto transfer : waiting)
    if (outgoing_.contains({to.peer, transfer})) submit(to.peer, transfer);
}

// The peer has these whole, and we may not know.
void session_transport::note_received(session& by, std::span<const std::byte> transfers) {
  for (; !transfers.empty(); transfers = transfers.subspan(sizeof(std::uint64_t))) {
    std::uint64_t transfer = 0;
    std::memcpy(&transfer, transfers.data(), sizeof(transfer));
    const auto found = outgoing_.find({by.peer, transfer});
    if (found == outgoing_.end()) continue;
    probe<"session.transfer_was_whole">::hit();
    found->second->received = true;
    if (!found->second->held) finish(found->first, {});
  }
}

// What the transport below holds is given back by it, and told then.
void session_transport::fail_transfers(incarnation_id peer, const error& cause) {
  std::vector<transfer_key> ended;
  for (const auto& [key, what] : outgoing_)
    if (key.first == peer && !what->held) ended.push_back(key);
  for (const auto& key : ended)
    finish(key, cause);
  std::vector<std::uint64_t> given_back;
  for (const auto& [key, what] : incoming_)
    if (key.first == peer && !what.held) given_back.push_back(key.second);
  for (const auto transfer : given_back) {
    incoming_.erase({peer, transfer});
    if (listener_ != nullptr) listener_->on_bulk_received(peer, transfer, cause);
  }
}

// --- inward ---------------------------------------------------------------------------------------------

std::span<std::byte> session_transport::on_bulk_announced(incarnation_id from,
                                                          const bulk_announcement& what) {
  const auto by = find(from);
  if (by == nullptr || listener_ == nullptr) return {};
  if (std::ranges::find(by->done, what.transfer) != by->done.end()) return {};
  const auto known = incoming_.find({from, what.transfer});
  if (known != incoming_.end()) {
    auto& place = known->second;
    const bool free = !place.held && place.into.size() == what.bytes;
    if (!free) return {}; // the sender tries again
    place.held = true;
    return place.into;
  }
  const auto others =
      std::ranges::count_if(incoming_, [&](const auto& each) { return each.first.first == from; });
  if (static_cast<std::size_t>(others) >= limits::session_transfers_max) return {};
  const auto into = listener_->on_bulk_announced(from, what);
  if (!into.empty()) incoming_.emplace(transfer_key{from, what.transfer}, incoming_transfer{into, true});
  return into;
}

void session_transport::on_bulk_received(incarnation_id from, std::uint64_t transfer, expected<void> result) {
  const auto by = find(from);
  const auto known = incoming_.find({from, transfer});
  if (known == incoming_.end()) return;
  if (by != nullptr && !result) {
    known->second.held = false; // begins again with the path
    return;
  }
  incoming_.erase(known);
  if (by != nullptr) {
    by->done.push_back(transfer);
    if (by->done.size() > limits::session_done_transfers_max) by->done.pop_front();
  }
  if (listener_ != nullptr) listener_->on_bulk_received(from, transfer, std::move(result));
}

} // namespace troupe
