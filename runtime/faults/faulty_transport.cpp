#include "runtime/faults/faulty_transport.hpp"

#include <algorithm>
#include <cstring>

#include "runtime/base/limits.hpp"

namespace troupe {
namespace {

error lost_path() {
  return {errc::path_lost, "the path was lost"};
}

// A copy that is aligned as a payload is.
class payload_copy {
public:
  explicit payload_copy(std::span<const std::byte> from)
      : words_((from.size() + sizeof(std::uint64_t) - 1) / sizeof(std::uint64_t))
      , bytes_{from.size()} {
    if (bytes_ > 0) std::memcpy(words_.data(), from.data(), bytes_);
  }
  [[nodiscard]] std::span<const std::byte> bytes() const {
    return std::as_bytes(std::span{words_}).first(bytes_);
  }

private:
  std::vector<std::uint64_t> words_;
  std::size_t bytes_;
};

} // namespace

faulty_transport::faulty_transport(transport& inner, clock_seam& clock, fault_switches& switches,
                                   incarnation_id fragile)
    : inner_{inner}
    , switches_{switches}
    , fragile_{fragile}
    , inward_{clock, switches, switches.cut_in}
    , outward_{clock, switches, switches.cut_out} {}

faulty_transport::~faulty_transport() {
  inner_.set_listener(nullptr);
}

void faulty_transport::set_listener(transport_listener* listener) {
  listener_ = listener;
  inner_.set_listener(listener == nullptr ? nullptr : this);
}

// --- outward --------------------------------------------------------------------------------------------

expected<void> faulty_transport::connect(incarnation_id peer, const peer_address& address) {
  return inner_.connect(peer, address);
}

expected<void> faulty_transport::send(incarnation_id peer, std::span<const std::byte> payload) {
  if (peer == fragile_ && switches_.path_error.take())
    break_path(peer, {errc::path_lost, "injected fault path-error"});
  if (untold_.contains(peer)) return lost_path();                // FY-3
  if (!outward_.holds_back()) return inner_.send(peer, payload); // FY-1
  return outward_.hold(peer, payload.size(),
                       [this, peer, copy = payload_copy{payload}](const expected<void>& path) {
                         if (path) (void)inner_.send(peer, copy.bytes()); // as lost as on any path that broke
                       });
}

void faulty_transport::send_bulk(incarnation_id peer, std::uint64_t transfer,
                                 std::span<const std::byte> bytes, bulk_done done) {
  if (untold_.contains(peer)) return done(lost_path());
  if (!outward_.holds_back()) return inner_.send_bulk(peer, transfer, bytes, std::move(done));
  auto answer = std::make_shared<bulk_done>(std::move(done));
  auto held = outward_.hold(peer, 0, [this, peer, transfer, bytes, answer](const expected<void>& path) {
    if (!path) return (*answer)(path); // TR-3
    inner_.send_bulk(peer, transfer, bytes, std::move(*answer));
  });
  if (!held) (*answer)(held);
}

void faulty_transport::close(incarnation_id peer) {
  inner_.close(peer);
  forget(peer);
}

void faulty_transport::drop(incarnation_id peer) {
  inner_.drop(peer);
  forget(peer);
}

void faulty_transport::forget(incarnation_id peer) {
  const error closed{errc::path_lost, "the path was closed"};
  outward_.drop(peer, closed);
  inward_.drop(peer, closed); // TR-2
}

// --- inward ---------------------------------------------------------------------------------------------

void faulty_transport::hold_inward(incarnation_id from, std::size_t bytes, held_queue::carried what) {
  const auto held = inward_.hold(from, bytes, std::move(what));
  if (!held) break_path(from, {errc::path_lost, held.failure().text});
}

void faulty_transport::on_message(incarnation_id from, std::span<const std::byte> payload) {
  if (!inward_.holds_back()) return listener_->on_message(from, payload); // FY-1
  hold_inward(from, payload.size(), [this, from, copy = payload_copy{payload}](const expected<void>& path) {
    if (path) listener_->on_message(from, copy.bytes());
  });
}

// Whoever would say where it shall be written must not know of it yet: it lands here.
std::span<std::byte> faulty_transport::on_bulk_announced(incarnation_id from, const bulk_announcement& what) {
  if (!inward_.holds_back() || what.bytes > limits::bulk_bytes_max)
    return listener_->on_bulk_announced(from, what);
  auto& here = landed_[{from, what.transfer}];
  here = {std::vector<std::byte>(what.bytes), {}};
  hold_inward(from, 0, [this, from, what](const expected<void>& path) { // in its place (TR-5)
    const auto waiting = landed_.find({from, what.transfer});
    if (path && waiting != landed_.end()) waiting->second.into = listener_->on_bulk_announced(from, what);
  });
  return here.memory;
}

void faulty_transport::on_bulk_received(incarnation_id from, std::uint64_t transfer, expected<void> result) {
  if (!inward_.holds_back()) return hand_over(from, transfer, result);
  auto outcome = std::make_shared<expected<void>>(std::move(result));
  hold_inward(from, 0, [this, from, transfer, outcome](const expected<void>& path) {
    hand_over(from, transfer, path ? *outcome : path);
  });
}

void faulty_transport::hand_over(incarnation_id from, std::uint64_t transfer, const expected<void>& result) {
  const auto landed = landed_.extract({from, transfer});
  if (!landed.empty()) {
    const auto& here = landed.mapped();
    if (here.into.empty()) return; // refused, or never announced
    if (result) std::ranges::copy(here.memory, here.into.begin());
  }
  listener_->on_bulk_received(from, transfer, result);
}

void faulty_transport::on_path_lost(incarnation_id from, const error& cause) {
  outward_.drop(from, cause); // not over the next path
  inward_.holds_back() ? tell_loss_later(from, cause) : listener_->on_path_lost(from, cause);
}

// Told as every callback is: not inside a call.
void faulty_transport::break_path(incarnation_id peer, const error& cause) {
  drop(peer);
  tell_loss_later(peer, cause);
}

void faulty_transport::tell_loss_later(incarnation_id peer, const error& cause) {
  auto why = std::make_shared<const error>(cause);
  untold_.insert(peer);
  hold_inward(peer, 0, [this, peer, why](const expected<void>& path) {
    untold_.erase(untold_.find(peer));
    if (path) listener_->on_path_lost(peer, *why);
  });
}

} // namespace troupe
