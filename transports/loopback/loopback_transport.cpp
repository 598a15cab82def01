#include "transports/loopback/loopback_transport.hpp"

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "runtime/base/limits.hpp"

namespace troupe {
namespace {

constexpr std::size_t bulk_per_peer_max = 64;

std::string short_name(incarnation_id who) {
  return to_string(who).substr(0, 8);
}

struct message {
  incarnation_id from, to;
  std::uint64_t path{0};          // the sender's number of it
  std::vector<std::byte> payload; // allocated memory is aligned for any number
};

struct transfer_state {
  incarnation_id from, to;
  std::uint64_t path{0}; // the sender's number of it
  std::uint64_t transfer{0};
  std::span<const std::byte> source;
  std::span<std::byte> target; // empty until the listener lent it
  std::size_t offset{0};
  bulk_done done;
  bool over{false}; // neither span is touched any more
};
using transfer_ptr = std::shared_ptr<transfer_state>;

} // namespace

struct loopback_hub::state : std::enable_shared_from_this<state> {
  state(executor& on, loopback_settings with)
      : loop{on}
      , settings{with} {}

  executor& loop;
  loopback_settings settings;
  std::unordered_map<incarnation_id, end*> ends;
  std::vector<std::unique_ptr<message>> spare;
  std::uint64_t last_path{0};

  [[nodiscard]] end* find(incarnation_id who) const {
    const auto found = ends.find(who);
    return found == ends.end() ? nullptr : found->second;
  }
  [[nodiscard]] std::unique_ptr<message> take() {
    if (spare.empty()) return std::make_unique<message>();
    auto taken = std::move(spare.back());
    spare.pop_back();
    return taken;
  }
  template <class Work>
  void post(Work work) {
    loop.post([hub = shared_from_this(), ready = std::move(work)]() mutable { ready(*hub); });
  }
};

class loopback_hub::end final : public transport {
public:
  end(std::shared_ptr<state> hub, incarnation_id self)
      : hub_{std::move(hub)}
      , self_{self} {
    invariant(hub_->ends.emplace(self, this).second, "a loopback end is opened once per incarnation");
  }
  ~end() override;

  void set_listener(transport_listener* listener) override { listener_ = listener; }
  [[nodiscard]] peer_address local_address() const override {
    const auto id = std::as_bytes(std::span{&self_, 1});
    return {id.begin(), id.end()};
  }
  [[nodiscard]] incarnation_id self() const override { return self_; }
  expected<void> connect(incarnation_id peer, const peer_address& address) override;
  expected<void> send(incarnation_id peer, std::span<const std::byte> payload) override;
  void send_bulk(incarnation_id peer, std::uint64_t transfer, std::span<const std::byte> bytes,
                 bulk_done done) override;
  void close(incarnation_id peer) override;
  void drop(incarnation_id peer) override;

private:
  struct path {
    bool open{true};         // false: parted with a goodbye, and remembered (LT-2)
    std::uint64_t number{0}; // of this end; a later path has a higher one
    std::uint64_t theirs{0}; // the other end's; 0: not heard of yet
    std::size_t in_flight_bytes{0};
    std::map<std::uint64_t, transfer_ptr> outgoing;
    std::map<std::uint64_t, transfer_ptr> incoming;
  };
  [[nodiscard]] path* open_path(incarnation_id peer) {
    const auto found = paths_.find(peer);
    return found == paths_.end() || !found->second.open ? nullptr : &found->second;
  }
  [[nodiscard]] static error no_path(incarnation_id peer) {
    return {errc::path_lost, "no path to " + short_name(peer)};
  }
  // A path from `peer` to this end that the other end calls `number`.
  [[nodiscard]] path* heard_path(incarnation_id peer, std::uint64_t number) {
    auto* known = open_path(peer);
    return known == nullptr || known->theirs != number ? nullptr : known;
  }
  // `answers`: the other end's path that made us open this one; 0: we wanted it.
  void open_path(incarnation_id peer, std::uint64_t answers);
  bool meet(incarnation_id from, std::uint64_t number, std::uint64_t answers); // an incoming connect
  void deliver(message& what);
  void part(incarnation_id peer, const error& cause, bool announce);
  // The path that one of them calls `number` is lost to `at`.
  static void post_loss(state& hub, incarnation_id at, incarnation_id of, std::uint64_t number, error cause);
  static void announce(state& hub, const transfer_ptr& what);
  static void copy_piece(state& hub, const transfer_ptr& what);
  static void finish(state& hub, const transfer_ptr& what, std::optional<error> failure);

  std::shared_ptr<state> hub_;
  incarnation_id self_;
  transport_listener* listener_{nullptr};
  std::map<incarnation_id, path> paths_;
};

loopback_hub::loopback_hub(executor& loop, loopback_settings settings)
    : state_{std::make_shared<state>(loop, settings)} {}

std::unique_ptr<transport> loopback_hub::open(incarnation_id self) {
  return std::make_unique<end>(state_, self);
}

// The others see a lost path; what this end waited for completes here and now.
loopback_hub::end::~end() {
  listener_ = nullptr;
  hub_->ends.erase(self_);
  const error gone{errc::path_lost, short_name(self_) + " is gone"};
  std::vector<std::pair<incarnation_id, std::uint64_t>> open;
  for (const auto& [peer, known] : paths_)
    if (known.open) open.emplace_back(peer, known.number);
  for (const auto& [peer, number] : open) {
    part(peer, gone, false);
    post_loss(*hub_, peer, self_, number, gone);
  }
}

expected<void> loopback_hub::end::connect(incarnation_id peer, const peer_address& address) {
  if (!peer.valid() || peer == self_ || address.size() != sizeof(incarnation_id))
    return error{errc::bad_argument,
                 "connect to " + short_name(peer) + ": needs another end and its address"};
  const auto known = paths_.find(peer);
  if (known != paths_.end()) return known->second.open ? expected<void>{} : no_path(peer);
  open_path(peer, 0);
  return {};
}

void loopback_hub::end::open_path(incarnation_id peer, std::uint64_t answers) {
  const auto number = ++hub_->last_path;
  auto& added = paths_[peer];
  added.number = number;
  added.theirs = answers;
  hub_->post([from = self_, peer, number, answers](state& hub) {
    auto* other = hub.find(peer);
    if (other == nullptr || !other->meet(from, number, answers))
      post_loss(hub, from, peer, number, {errc::refused, "no end " + short_name(peer)});
  });
}

// A newer path of the other end's says that the one we have has failed there; an answer to a path that we
// have no more says nothing.
bool loopback_hub::end::meet(incarnation_id from, std::uint64_t number, std::uint64_t answers) {
  auto known = paths_.find(from);
  if (known != paths_.end() && !known->second.open) return false;
  if (answers != 0 && (known == paths_.end() || known->second.number != answers)) return true;
  if (known != paths_.end() && known->second.theirs != 0) {
    if (number <= known->second.theirs) return true;
    part(from, {errc::path_lost, short_name(from) + " opened a new path"}, true);
    known = paths_.find(from); // the listener may have connected
  }
  if (known == paths_.end())
    open_path(from, answers == 0 ? number : 0); // ours was just lost: what answers it is of no use
  else
    known->second.theirs = number;
  return true;
}

expected<void> loopback_hub::end::send(incarnation_id peer, std::span<const std::byte> payload) {
  if (payload.size() > limits::payload_bytes_max)
    return error{errc::too_large, "a message of " + std::to_string(payload.size()) + " bytes; at most " +
                                      std::to_string(limits::payload_bytes_max) + " fit"};
  auto* open = open_path(peer);
  if (open == nullptr) return no_path(peer);
  if (open->in_flight_bytes + payload.size() > hub_->settings.in_flight_bytes_max)
    return error{errc::no_credit, "too many bytes on their way to " + short_name(peer)};
  open->in_flight_bytes += payload.size();
  auto what = hub_->take();
  what->from = self_;
  what->to = peer;
  what->path = open->number;
  what->payload.assign(payload.begin(), payload.end());
  hub_->post([held = std::move(what)](state& hub) mutable {
    if (auto* sender = hub.find(held->from))
      if (auto* out = sender->open_path(held->to); out != nullptr && out->number == held->path)
        out->in_flight_bytes -= held->payload.size();
    if (auto* receiver = hub.find(held->to)) receiver->deliver(*held);
    hub.spare.push_back(std::move(held));
  });
  return {};
}

void loopback_hub::end::deliver(message& what) {
  if (heard_path(what.from, what.path) != nullptr && listener_ != nullptr)
    listener_->on_message(what.from, what.payload);
}

void loopback_hub::end::close(incarnation_id peer) {
  const auto* closing = open_path(peer);
  if (closing == nullptr) return;
  const auto number = closing->number;
  part(peer, {errc::aborted, "the path to " + short_name(peer) + " was closed"}, false);
  paths_[peer].open = false; // LT-2
  post_loss(*hub_, peer, self_, number, {errc::actor_stopped, short_name(self_) + " said goodbye"});
}

void loopback_hub::end::drop(incarnation_id peer) {
  const auto* dropped = open_path(peer);
  if (dropped == nullptr) return;
  const auto number = dropped->number;
  part(peer, {errc::path_lost, "the path to " + short_name(peer) + " was dropped"}, false);
  post_loss(*hub_, peer, self_, number, {errc::path_lost, "the path to " + short_name(self_) + " failed"});
}

void loopback_hub::end::post_loss(state& hub, incarnation_id at, incarnation_id of, std::uint64_t number,
                                  error cause) {
  hub.post([at, of, number, why = std::make_unique<error>(std::move(cause))](state& later) {
    auto* receiver = later.find(at);
    const auto* lost = receiver == nullptr ? nullptr : receiver->open_path(of);
    if (lost == nullptr || (lost->number != number && lost->theirs != number && lost->theirs != 0)) return;
    receiver->part(of, *why, true);
    if (why->code == errc::actor_stopped) receiver->paths_[of].open = false; // LT-2
  });
}

// Ends the path here: transfers fail, their spans come back, then the loss is told (TR-2, TR-3).
void loopback_hub::end::part(incarnation_id peer, const error& cause, bool announce_loss) {
  auto* parting = open_path(peer);
  if (parting == nullptr) return;
  const auto outgoing = std::exchange(parting->outgoing, {});
  const auto incoming = std::exchange(parting->incoming, {});
  paths_.erase(peer);
  for (const auto& [transfer, what] : outgoing) {
    what->over = true;
    std::exchange(what->done, {})(cause);
  }
  for (const auto& [transfer, what] : incoming) {
    what->over = true;
    if (listener_ != nullptr) listener_->on_bulk_received(peer, transfer, cause);
  }
  if (announce_loss && listener_ != nullptr) listener_->on_path_lost(peer, cause);
}

void loopback_hub::end::send_bulk(incarnation_id peer, std::uint64_t transfer,
                                  std::span<const std::byte> bytes, bulk_done done) {
  auto* open = open_path(peer);
  if (open == nullptr) {
    done(no_path(peer));
  } else if (bytes.size() > limits::bulk_bytes_max) {
    done(error{errc::too_large, "a transfer of " + std::to_string(bytes.size()) + " bytes; at most " +
                                    std::to_string(limits::bulk_bytes_max)});
  } else if (bytes.empty() || open->outgoing.contains(transfer)) {
    done(error{errc::bad_argument, "transfer " + std::to_string(transfer) + " is empty or under way"});
  } else if (open->outgoing.size() >= bulk_per_peer_max) {
    done(error{errc::no_credit, "too many transfers to " + short_name(peer)});
  } else {
    auto what = std::make_shared<transfer_state>();
    what->from = self_;
    what->to = peer;
    what->path = open->number;
    what->transfer = transfer;
    what->source = bytes;
    what->done = std::move(done);
    open->outgoing.emplace(transfer, what);
    hub_->post([what](state& hub) { announce(hub, what); });
  }
}

void loopback_hub::end::announce(state& hub, const transfer_ptr& what) {
  auto* receiver = hub.find(what->to);
  if (what->over || receiver == nullptr || receiver->listener_ == nullptr) return;
  if (receiver->heard_path(what->from, what->path) == nullptr) return; // a loss is on its way to the sender
  what->target = receiver->listener_->on_bulk_announced(what->from, {what->transfer, what->source.size()});
  if (what->target.empty()) {
    finish(hub, what, error{errc::refused, "transfer " + std::to_string(what->transfer) + " was refused"});
    return;
  }
  invariant(what->target.size() == what->source.size(), "the listener lends exactly what was announced");
  auto* in = receiver->heard_path(what->from, what->path);
  if (in == nullptr) { // the listener closed the path just now: its span comes back at once
    receiver->listener_->on_bulk_received(what->from, what->transfer, no_path(what->from));
    return;
  }
  in->incoming.emplace(what->transfer, what);
  hub.post([what](state& later) { copy_piece(later, what); });
}

void loopback_hub::end::copy_piece(state& hub, const transfer_ptr& what) {
  if (what->over) return;
  const auto bytes = std::min(hub.settings.bulk_piece_bytes, what->source.size() - what->offset);
  std::memcpy(what->target.data() + what->offset, what->source.data() + what->offset, bytes);
  what->offset += bytes;
  if (what->offset < what->source.size()) {
    hub.post([what](state& later) { copy_piece(later, what); });
    return;
  }
  if (auto* receiver = hub.find(what->to)) {
    if (auto* in = receiver->heard_path(what->from, what->path)) in->incoming.erase(what->transfer);
    if (receiver->listener_ != nullptr) receiver->listener_->on_bulk_received(what->from, what->transfer, {});
  }
  finish(hub, what, std::nullopt);
}

// Tells the sender, unless its path has ended meanwhile and told it already.
void loopback_hub::end::finish(state& hub, const transfer_ptr& what, std::optional<error> failure) {
  hub.post([what, why = std::make_unique<std::optional<error>>(std::move(failure))](state& later) {
    if (what->over) return;
    what->over = true;
    if (auto* sender = later.find(what->from))
      if (auto* out = sender->open_path(what->to); out != nullptr && out->number == what->path)
        out->outgoing.erase(what->transfer);
    auto done = std::exchange(what->done, {});
    if (*why)
      done(**why);
    else
      done({});
  });
}

} // namespace troupe
