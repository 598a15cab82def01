// Session transport: bulk transfers, which begin again when a path cut them short (SE-5) or what arrived is
// not what was sent (SE-6).
//
//   sender                        receiver
//   transfer, hashes meanwhile -> arrives, is hashed
//   `sent` with its digest     -> compares: the same is handed up
//   done, or begins again      <- `found` with its own digest
//
// `sent` leaves as soon as the digest is known, mostly while the transfer is still on its way: a path keeps
// it behind the announcement that it belongs to (TR-5).
// A word that gets lost is lost with its path; the next one begins with the transfer, unless its `resume`
// says that it is whole.
#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <utility>

#include "runtime/base/planted_bug.hpp"
#include "runtime/base/probe.hpp"
#include "runtime/session/session_transport.hpp"

namespace troupe {
namespace {

constexpr duration credit_retry{std::chrono::milliseconds{1}};

transfer_body body_of(std::uint64_t transfer, unsigned attempt, const std::string& digest) {
  transfer_body body{.transfer = transfer, .attempt = attempt, .zero = 0, .digest = {}};
  std::ranges::copy(digest, body.digest.begin());
  return body;
}

error arrived_wrong(std::uint64_t transfer, unsigned times, const std::string& sent,
                    const std::string& found) {
  return {errc::corrupt, "transfer " + std::to_string(transfer) + " arrived wrong " + std::to_string(times) +
                             " times: digest " + sent + " where it was sent, " + found + " where it arrived"};
}

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
  const auto added =
      std::make_shared<outgoing_transfer>(outgoing_transfer{.bytes = bytes, .done = std::move(done)});
  outgoing_.emplace(key, added);
  added->hashing = digests_.begin(bytes, [this, key](const std::string& digest) {
    outgoing_.at(key)->digest = digest;
    tell_digest(key);
  });
  if (to->state != path_state::down) submit(peer, transfer);
}

void session_transport::submit(incarnation_id peer, std::uint64_t transfer) {
  const auto what = outgoing_.at({peer, transfer});
  what->held = true;
  what->found.clear();
  if (what->tries++ > 0) ++counters_.transfers_again;
  inner_.send_bulk(peer, transfer, what->bytes,
                   [weak = std::weak_ptr{handle_}, what, peer, transfer](expected<void> result) {
                     if (const auto self = weak.lock())
                       (*self)->settled(peer, transfer, std::move(result));
                     else
                       what->done(std::move(result));
                   });
  tell_digest({peer, transfer});
}

// The transport below is done with it, one way or the other.
void session_transport::settled(incarnation_id peer, std::uint64_t transfer, expected<void> result) {
  const transfer_key key{peer, transfer};
  const auto found = outgoing_.find(key);
  if (found == outgoing_.end()) return;
  auto& what = *found->second;
  what.held = false;
  const auto to = find(peer);
  if (what.received || (!what.found.empty() && what.found == what.digest)) return finish(key, {});
  if (to == nullptr && result) result = error{errc::path_lost, "the session ended before it was checked"};
  if (result) {
    tell_digest(key);
    return judge(key);
  }
  const auto code = result.failure().code;
  const auto patience = limits::session_refusal_patience - what.refused_for;
  const bool unwanted = code == errc::refused && (what.tries <= 1 || patience <= duration{0});
  if (to == nullptr || unwanted) return finish(key, result);
  if (code != errc::refused && code != errc::path_lost && code != errc::aborted) return finish(key, result);
  probe<"session.transfer_cut_short">::hit();
  if (to->state != path_state::open) return; // begins again with the path
  // The path is a new one already, or the peer's transport has not let go of the place yet.
  auto pause = limits::session_refusal_pause_min;
  if (code == errc::refused) {
    pause = std::min({what.refused_for + pause, limits::session_refusal_pause_max, patience});
    what.refused_for += pause;
  }
  clock_.call_after(pause, guarded([peer, transfer, cut = what.tries](session_transport& self) {
                      const auto again = self.find(peer);
                      const auto waiting = self.outgoing_.find({peer, transfer});
                      if (again == nullptr || waiting == self.outgoing_.end()) return;
                      // A new path has begun it again already, and that try may have arrived.
                      if (probe<"session.transfer_tried_again">::when(waiting->second->tries != cut)) return;
                      if (again->state == path_state::open) self.submit(peer, transfer);
                    }));
}

// Once a try, as soon as the digest is known and the path is open; at the latest when all has arrived.
void session_transport::tell_digest(transfer_key which) {
  const auto known = outgoing_.find(which);
  const auto to = find(which.first);
  if (known == outgoing_.end() || to == nullptr || to->state != path_state::open) return;
  auto& what = *known->second;
  if (what.tries == 0 || what.told == what.tries || what.digest.empty()) return;
  const auto said = say(*to, session_kind::sent, body_of(which.second, what.tries, what.digest));
  if (said)
    what.told = what.tries;
  else if (said.failure().code == errc::no_credit)
    clock_.call_after(credit_retry, guarded([which](session_transport& self) { self.tell_digest(which); }));
}

// The peer's answer: the digest of what has arrived there.
void session_transport::on_found(session& by, const transfer_body& found) {
  const transfer_key key{by.peer, found.transfer};
  const auto known = outgoing_.find(key);
  if (known == outgoing_.end()) return;
  auto& what = *known->second;
  if (found.attempt != what.tries || found.attempt != what.told) return; // of an earlier try
  what.found = found.text();
  if (!what.held) judge(key);
}

// Both have hashed it, and the transport below holds it no more.
void session_transport::judge(transfer_key which) {
  auto& what = *outgoing_.at(which);
  if (what.found.empty()) return;
  if (what.found == what.digest) return finish(which, {});
  if (++what.wrong >= limits::session_wrong_arrivals_max)
    return finish(which, arrived_wrong(which.second, what.wrong, what.digest, what.found));
  submit(which.first, which.second);
}

void session_transport::finish(transfer_key which, const expected<void>& result) {
  auto node = outgoing_.extract(which);
  if (node.empty()) return;
  node.mapped()->hashing.reset(); // TR-4
  node.mapped()->done(result);    // TR-3
}

// Lost with its path, if that is lost.
expected<void> session_transport::say(session& to, session_kind kind, const transfer_body& what) {
  const session_header header{.magic = session_magic,
                              .kind = kind,
                              .lane = session_lane_id::ordinary,
                              .count = 0,
                              .sequence = 0,
                              .acked = {to.lanes[0].received(), to.lanes[1].received()}};
  std::array<std::byte, sizeof(header) + sizeof(what)> frame;
  std::memcpy(frame.data(), &header, sizeof(header));
  std::memcpy(frame.data() + sizeof(header), &what, sizeof(what));
  return inner_.send(to.peer, frame);
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

// With its path a word is lost also where it was heard: what is not compared yet begins again. Were it
// whole after the next path's `resume`, its sender would never hear of it.
void session_transport::forget_sent(incarnation_id peer) {
  for (auto& [key, what] : incoming_)
    if (key.first == peer) what.sent.reset();
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
    place.hashing.reset();
    place.digest.clear();
    place.sent.reset();
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
  const transfer_key key{from, transfer};
  const auto known = incoming_.find(key);
  if (known == incoming_.end()) return;
  known->second.held = false;
  if (find(from) == nullptr)
    return hand_up(key, result ? error{errc::path_lost, "the session ended before it was checked"} : result);
  if (result) hash_arrival(key); // else it begins again with the path
}

void session_transport::hash_arrival(transfer_key which) {
  auto& what = incoming_.at(which);
  what.hashing = digests_.begin(what.into, [this, which](const std::string& digest) {
    incoming_.at(which).digest = digest;
    check_arrival(which);
  });
}

void session_transport::on_sent(session& by, const transfer_body& sent) {
  const transfer_key key{by.peer, sent.transfer};
  const auto known = incoming_.find(key);
  if (known == incoming_.end()) return;
  auto& what = known->second;
  if (!what.held && what.hashing == nullptr) return; // of an earlier try
  what.sent = sent;
  check_arrival(key);
}

// Whichever comes last: the sender's digest, or ours.
void session_transport::check_arrival(transfer_key which) {
  auto& what = incoming_.at(which);
  if (!what.sent || what.digest.empty()) return;
  const auto sent = std::exchange(what.sent, std::nullopt);
  const auto found = std::exchange(what.digest, {});
  what.hashing.reset();
  const bool same = sent->text() == found || TROUPE_PLANTED("session.digest_not_checked");
  tell_found(which.first, body_of(which.second, sent->attempt, same ? sent->text() : found));
  if (same) return hand_up(which, {});
  ++counters_.arrived_wrong;
  probe<"session.transfer_arrived_wrong">::hit();
  if (probe<"session.transfer_given_up">::when(++what.wrong >= limits::session_wrong_arrivals_max))
    hand_up(which, arrived_wrong(which.second, what.wrong, sent->text(), found));
}

void session_transport::tell_found(incarnation_id peer, const transfer_body& what) {
  const auto to = find(peer);
  if (to == nullptr || to->state != path_state::open) return;
  const auto said = say(*to, session_kind::found, what);
  if (said || said.failure().code != errc::no_credit) return;
  clock_.call_after(credit_retry,
                    guarded([peer, what](session_transport& self) { self.tell_found(peer, what); }));
}

void session_transport::hand_up(transfer_key which, expected<void> result) {
  incoming_.erase(which);
  const auto by = find(which.first);
  if (by != nullptr && result) {
    by->done.push_back(which.second);
    if (by->done.size() > limits::session_done_transfers_max) by->done.pop_front();
  }
  if (listener_ != nullptr) listener_->on_bulk_received(which.first, which.second, std::move(result));
}

} // namespace troupe
