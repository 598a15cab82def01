// Worker core: how the state comes from a peer, and how it is given to others.
//
// A joiner asks the member that the plan names. Whoever is asked answers with the state once it holds it: at
// once, or when its own copy has come and has the digest of the state that the first source sent.
#include <algorithm>
#include <utility>

#include "actors/worker/worker_core.hpp"
#include "runtime/base/probe.hpp"

namespace troupe {

bool worker_core::is_source(incarnation_id who) const {
  return phase_ == phase::preparing && plan_.source == wire::state_source::peer &&
         plan_.members[plan_.source_rank.value()].incarnation == who;
}

void worker_core::on_peer(incarnation_id from, const wire::control& message) {
  if (const auto* m = std::get_if<wire::state_request>(&message)) return hear_request(from, *m);
  if (probe<"worker.peer_unheard">::when(!is_source(from))) return;
  if (const auto* m = std::get_if<wire::state_offer>(&message)) {
    if (m->generation == plan_.generation && m->step == plan_.step) offer_ = *m;
  } else if (const auto* refused = std::get_if<wire::state_refused>(&message)) {
    if (refused->generation == plan_.generation) prepare_failed({errc::aborted, refused->text});
  }
}

void worker_core::on_peer_lost(incarnation_id who, const error& cause) {
  const bool source_lost = is_source(who) && !state_ready_ && !arena_busy_;
  if (probe<"worker.source_lost">::when(source_lost))
    prepare_failed({errc::aborted, "the peer that sends the state is lost: " + cause.text});
}

// --- it comes -------------------------------------------------------------------------------------------

void worker_core::request_from_peer() {
  drop_state();
  const auto& source = plan_.members[plan_.source_rank.value()];
  auto sent = ports_.send_peer(source, wire::state_request{plan_.generation, plan_.step});
  if (probe<"worker.peer_unreachable">::when(!sent)) prepare_failed(sent.failure());
}

std::span<std::byte> worker_core::on_state_announced(incarnation_id from, const bulk_announcement& what) {
  // The offer came first, but may still wait in the mailbox: its digest is compared at the end.
  const bool wanted = is_source(from) && !state_ready_ && !arena_busy_ &&
                      what.transfer == plan_.generation.value() &&
                      what.bytes == trainer_.state_bytes().size();
  if (probe<"worker.transfer_unwanted">::when(!wanted)) return {};
  arena_busy_ = true;
  return trainer_.state_bytes();
}

void worker_core::on_state_received(incarnation_id, std::uint64_t transfer, const expected<void>& result) {
  if (!arena_busy_ || transfer != plan_.generation.value()) return;
  if (probe<"worker.transfer_torn">::when(!result)) {
    arena_busy_ = false;
    return state_settled(error{errc::aborted, result.failure().text});
  }
  digest_state([this](const std::string& found) {
    arena_busy_ = false;
    if (!offer_ || found != offer_->digest)
      return state_settled(error{errc::aborted, "the state received from a peer has the digest " + found +
                                                    ", announced was " +
                                                    (offer_ ? offer_->digest : std::string{"none"})});
    digest_ = found;
    state_settled({});
  });
}

// --- it is given ----------------------------------------------------------------------------------------

// The generation asked for may not have reached this member yet, or its state has not: then it is asked for
// what it will hold.
void worker_core::hear_request(incarnation_id from, const wire::state_request& m) {
  const bool comes = m.generation > plan_.generation ||
                     (m.generation == plan_.generation && phase_ == phase::preparing && !state_ready_);
  const bool here = may_give() && applied_ == m.step && m.generation >= plan_.generation;
  if (!here && !comes) {
    const auto text = "holds " + (holds_state_ ? "step " + to_string(applied_) : std::string{"no state"});
    (void)ports_.send_peer({from, {}, 0}, wire::state_refused{m.generation, text});
    return;
  }
  probe<"worker.asked_before_it_holds">::when(!here);
  std::erase_if(requests_, [&](const auto& one) { return one.from == from; });
  requests_.push_back({from, m});
  serve_next();
}

// It stands still, and no later run can begin before the director has heard of every transfer.
bool worker_core::may_give() const {
  return holds_state_ && !arena_busy_ && !trainer_.running();
}

// One at a time, in the order of ranks: who has more to pass on is served first (BC-3).
void worker_core::serve_next() {
  if (serving_ || !may_give()) return;
  const auto turn_of = [this](const request& one) {
    const auto rank = std::ranges::find(plan_.members, one.from, &wire::member::incarnation);
    return std::pair{one.what.step != applied_, rank - plan_.members.begin()};
  };
  const auto next = std::ranges::min_element(requests_, {}, turn_of);
  if (next == requests_.end() || next->what.step != applied_) return;
  serving_ = true;
  if (!digest_.empty()) {
    const auto served = *next;
    requests_.erase(next);
    return give(served);
  }
  digest_state([this](const std::string& digest) { // of the first source
    if (may_give()) digest_ = digest;
    given();
  });
}

void worker_core::give(const request& to) {
  probe<"worker.state_passed_on">::when(plan_.source == wire::state_source::peer);
  const auto bytes = std::span<const std::byte>{trainer_.state_bytes()};
  const wire::member receiver{to.from, {}, 0};
  const auto generation = to.what.generation;
  if (!ports_.send_peer(receiver, wire::state_offer{generation, to.what.step, bytes.size(), digest_}))
    return given(); // the path is lost: the asker hears of it too
  ports_.send_state(
      to.from, generation.value(), bytes,
      [this, alive = std::weak_ptr<int>{alive_}, receiver = to.from, generation](expected<void> sent) {
        if (alive.expired()) return;
        if (probe<"worker.state_not_sent">::when(!sent))
          (void)ports_.send_peer({receiver, {}, 0}, wire::state_refused{generation, sent.failure().text});
        given();
      });
}

void worker_core::given() {
  serving_ = false;
  serve_next();
  begin_if_ready();
}

void worker_core::drop_state() {
  holds_state_ = false;
  digest_.clear();
}

void worker_core::forget_requests_before(generation_id generation) {
  std::erase_if(requests_, [&](const auto& one) { return one.what.generation < generation; });
}

void worker_core::digest_state(std::function<void(const std::string&)> done) {
  trainer_.digest_state(
      [alive = std::weak_ptr<int>{alive_}, done = std::move(done)](const std::string& digest) {
        if (!alive.expired()) done(digest);
      });
}

} // namespace troupe
