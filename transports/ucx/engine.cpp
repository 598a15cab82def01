#include "transports/ucx/engine.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include <boost/asio/post.hpp>

#include "runtime/base/units.hpp"

namespace troupe {
namespace {

constexpr unsigned am_frames = 1;
constexpr unsigned am_pieces = 2;
constexpr duration turn_pause{std::chrono::milliseconds{1}};

std::string short_name(incarnation_id who) {
  return to_string(who).substr(0, 8);
}

std::string lanes_of(ucp_ep_h endpoint) {
  char* text = nullptr;
  std::size_t bytes = 0;
  std::FILE* stream = ::open_memstream(&text, &bytes);
  if (stream == nullptr) return {};
  ucp_ep_print_info(endpoint, stream);
  std::fclose(stream);
  std::string lanes{text, bytes};
  std::free(text);
  return lanes;
}

// Every line that names a lane names a tcp one.
bool only_tcp(const std::string& lanes) {
  for (auto at = lanes.find("lane["); at != std::string::npos; at = lanes.find("lane[", at + 1)) {
    const auto line = std::string_view{lanes}.substr(at, lanes.find('\n', at) - at);
    if (line.find(":tcp/") == std::string_view::npos) return false;
  }
  return true;
}

// The host answered, and nobody listens at that address any more: UCX 1.13 calls this a time-out, too.
bool refusal(const ucx_connection& path, ucs_status_t status) {
  return path.state == path_state::connecting && path.theirs == 0 && path.confirmed_by == 0 &&
         (status == UCS_ERR_ENDPOINT_TIMEOUT || status == UCS_ERR_CONNECTION_RESET ||
          status == UCS_ERR_REJECTED || status == UCS_ERR_UNREACHABLE);
}

} // namespace

ucx_engine::ucx_engine(boost::asio::io_context& loop, clock_seam& clock, incarnation_id self,
                       ucx_settings settings, std::unique_ptr<ucx_worker> worker)
    : loop_{loop}
    , clock_{clock}
    , self_{self}
    , settings_{std::move(settings)}
    , worker_{std::move(worker)}
    , wakeup_{loop, worker_->release_wakeup_fd()}
    , pool_{settings_.send_pool_bytes_max}
    , aligned_{limits::payload_bytes_max}
    , dead_{limits::ucx_dead_incarnations_max} {
  settings_.bulk_pieces_in_flight =
      std::clamp(settings_.bulk_pieces_in_flight, 1U, limits::ucx_bulk_pieces_in_flight_max);
  worker_->on_active_message(am_frames, &ucx_engine::on_frame, this);
  worker_->on_active_message(am_pieces, &ucx_engine::on_piece, this);
}

void ucx_engine::schedule() {
  boost::asio::post(loop_, [weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->pump();
  });
}

// Says goodbye where it goes out at once, then closes everything by force.
void ucx_engine::stop() {
  stopped_ = true;
  listener_ = nullptr;
  clock_.cancel(pause_);
  for (auto& [id, path] : connections_) {
    const bool dropped = path->close_wanted && !path->ended_for_good;
    if (path->state == path_state::open && !dropped) send_owed(*path, frame_kind::goodbye, {});
    path->close_wanted = true;
  }
  for (unsigned calls = 0; calls < limits::ucx_progress_calls_max && worker_->progress() != 0; ++calls) {
  }
  for (auto& [id, path] : connections_)
    if (path->state != path_state::draining) drain(*path);
  for (unsigned calls = 0; calls < limits::ucx_teardown_calls_max && !connections_.empty(); ++calls) {
    worker_->progress();
    run_deferred();
    await_drained();
  }
  for (auto& [id, path] : connections_) { // UCX never let go of these
    cancel_timer(*path);
    for (auto& [transfer, bulk] : path->outgoing)
      if (bulk->done) bulk->done(error{errc::aborted, "the transport was closed"});
  }
  wakeup_.close();
  worker_.reset();
  deferred_.clear();
}

// --- turns of the loop ---

// What UCX brought goes to the actors before UCX is asked again: the next turn queues behind their work, and
// behind the flush of what they send.
void ucx_engine::pump() {
  if (stopped_) return;
  in_pump_ = true;
  again_ = false;
  unsigned calls = 0;
  unsigned events = 0;
  do {
    events = worker_->progress();
    run_deferred();
    std::erase_if(greeting_, [this](ucx_connection* path) { return greet(*path); });
    await_drained();
  } while (events == 0 && !deferred_.empty() && ++calls < limits::ucx_progress_calls_max);
  in_pump_ = false;
  idle_turns_ = events == 0 ? idle_turns_ + 1 : 0;
  if (!deferred_.empty()) again_ = true;
  if (events != 0)
    schedule_behind();
  else
    next_turn();
}

void ucx_engine::schedule_behind() {
  boost::asio::post(loop_, [weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->schedule();
  });
}

// Only what UCX has; the turn that this asks for does the rest, behind the work of the actors.
bool ucx_engine::look() {
  if (stopped_) return false;
  in_pump_ = true;
  const auto events = worker_->progress();
  in_pump_ = false;
  if (events != 0) kick();
  return events != 0;
}

// At once, when the descriptor wakes us, or after a pause: while a peer does not answer its wire-up, UCX
// keeps the descriptor ready although there is nothing to do, and a receive that drains has no wake-up.
void ucx_engine::next_turn() {
  const bool fruitless = idle_turns_ > limits::ucx_idle_turns_max;
  if (fruitless)
    pause();
  else if (again_ || !draining_.empty() || !worker_->arm())
    schedule();
  else
    wait();
}

void ucx_engine::wait() {
  waiting_ = true;
  wakeup_.async_wait(boost::asio::posix::stream_descriptor::wait_read,
                     [weak = weak_from_this()](const boost::system::error_code&) {
                       const auto self = weak.lock();
                       if (self == nullptr || self->stopped_) return;
                       self->waiting_ = false;
                       self->pump();
                     });
}

void ucx_engine::pause() {
  pause_ = clock_.call_after(turn_pause, [weak = weak_from_this()] {
    const auto self = weak.lock();
    if (self == nullptr || self->stopped_) return;
    self->pause_ = 0;
    self->idle_turns_ = limits::ucx_idle_turns_max - 1; // one pause, then one wait
    self->pump();
  });
}

// There is always exactly one next turn under way: a posted one, or the wait or pause that this ends.
void ucx_engine::kick() {
  again_ = true;
  idle_turns_ = 0;
  if (in_pump_ || stopped_) return;
  if (pause_ != 0) {
    clock_.cancel(std::exchange(pause_, 0));
    schedule();
  } else if (waiting_) {
    boost::system::error_code ignored;
    wakeup_.cancel(ignored);
  }
}

void ucx_engine::later(task work) {
  deferred_.push_back(std::move(work));
  kick();
}

void ucx_engine::run_deferred() {
  for (auto count = deferred_.size(); count > 0; --count) {
    auto work = std::move(deferred_.front());
    deferred_.pop_front();
    work();
  }
}

void ucx_engine::await_drained() {
  auto ended = std::exchange(draining_, {}); // the listener may end more paths when it is told
  std::erase_if(ended, [this](ucx_connection* path) { return gone(*path); });
  draining_.insert(draining_.end(), ended.begin(), ended.end());
}

// --- life of a path ---

ucx_connection& ucx_engine::add_connection(incarnation_id peer, peer_address address) {
  auto path = std::make_unique<ucx_connection>();
  path->engine = this;
  path->id = ++last_id_;
  path->peer = peer;
  path->address = std::move(address);
  auto& added = *connections_.emplace(path->id, std::move(path)).first->second;
  by_peer_.emplace(peer, &added);
  return added;
}

ucx_connection* ucx_engine::find(incarnation_id peer) const {
  const auto found = by_peer_.find(peer);
  return found == by_peer_.end() ? nullptr : found->second;
}

ucx_connection* ucx_engine::find(std::uint64_t id) const {
  const auto found = connections_.find(id);
  return found == connections_.end() ? nullptr : found->second.get();
}

expected<void> ucx_engine::connect(incarnation_id peer, const peer_address& address) {
  if (!job_.valid() || !peer.valid() || peer == self_ || address.empty() ||
      address.size() > limits::ucx_address_bytes_max)
    return error{errc::bad_argument,
                 "connect to " + short_name(peer) + ": needs a job, another process and its address"};
  if (stopped_) return error{errc::path_lost, "the transport was closed"};
  if (const auto* path = find(peer); path != nullptr && !path->close_wanted) return {};
  if (dead_.contains(peer) || find(peer) != nullptr)
    return error{errc::path_lost,
                 "the path to " + short_name(peer) + " has ended; a restarted process is new"};
  if (connections_.size() >= limits::ucx_peers_max)
    return error{errc::no_credit, "more than " + std::to_string(limits::ucx_peers_max) + " paths"};
  later([this, id = add_connection(peer, address).id] {
    if (auto* path = find(id); path != nullptr && path->state == path_state::connecting) begin(*path);
  });
  return {};
}

// Makes the endpoint and sends our hello.
void ucx_engine::begin(ucx_connection& path) {
  if (path.endpoint != nullptr) return; // their hello came first
  ucp_ep_params_t params{};
  params.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE |
                      UCP_EP_PARAM_FIELD_ERR_HANDLER;
  params.address = reinterpret_cast<const ucp_address_t*>(path.address.data());
  params.err_mode = UCP_ERR_HANDLING_MODE_PEER;
  params.err_handler.cb = &ucx_engine::on_endpoint_error;
  params.err_handler.arg = &path;
  const auto status = ucp_ep_create(worker_->handle(), &params, &path.endpoint);
  if (status != UCS_OK) {
    path.endpoint = nullptr;
    lose(path, error{errc::path_lost,
                     "no endpoint for " + short_name(path.peer) + ": " + ucs_status_string(status)});
    return;
  }
  set_timer(path, settings_.handshake_timeout);
  make_hello(path);
  greeting_.push_back(&path);
  kick();
}

void ucx_engine::open_when_heard(ucx_connection& path) {
  const bool both = path.theirs != 0 && path.confirmed == path.theirs && path.confirmed_by == path.theirs;
  if (!both || path.sends_out != 0 || path.state != path_state::connecting) return;
  cancel_timer(path);
  if (settings_.transports == "tcp" && !only_tcp(lanes_of(path.endpoint))) {
    lose(path, error{errc::internal, "UCX chose a lane that is not tcp:\n" + lanes_of(path.endpoint)});
    return;
  }
  path.state = path_state::open;
  ++counters_.paths_opened;
  flush_queue(path);
  if (pieces_whole())
    for (const auto& [transfer, bulk] : path.outgoing)
      later([this, id = path.id, number = transfer] { go_on(id, number); });
  if (path.ended_for_good) say_goodbye(path);
}

void ucx_engine::close(incarnation_id peer) {
  auto* path = find(peer);
  if (path == nullptr || path->close_wanted) return;
  path->close_wanted = true;
  path->ended_for_good = true;
  later([this, id = path->id] {
    if (auto* closing = find(id)) say_goodbye(*closing);
  });
}

void ucx_engine::drop(incarnation_id peer) {
  auto* path = find(peer);
  if (path == nullptr || path->close_wanted) return;
  path->close_wanted = true;
  unlist(*path);
  later([this, id = path->id] {
    auto* dropped = find(id);
    if (dropped != nullptr && dropped->state <= path_state::open) drain(*dropped);
  });
}

void ucx_engine::unlist(ucx_connection& path) {
  const auto listed = by_peer_.find(path.peer);
  if (listed != by_peer_.end() && listed->second == &path) by_peer_.erase(listed);
}

void ucx_engine::bury(incarnation_id peer) {
  dead_.add(peer);
  heard_.erase(peer);
}

void ucx_engine::say_goodbye(ucx_connection& path) {
  if (path.state > path_state::open) return;
  set_timer(path, settings_.linger_timeout);
  if (path.state == path_state::connecting) return; // once it is open
  send_owed(path, frame_kind::goodbye, {});
  path.state = path_state::lingering;
  fail_outgoing(path, end_of(path));
}

error ucx_engine::end_of(const ucx_connection& path) const {
  return path.loss ? *path.loss
                   : error{errc::aborted, "the path to " + short_name(path.peer) + " was closed"};
}

void ucx_engine::lose(ucx_connection& path, error cause) {
  if (path.state == path_state::draining) return;
  if (path.state != path_state::lingering && !path.close_wanted) {
    ++counters_.paths_lost;
    path.loss = std::move(cause);
  }
  drain(path);
}

void ucx_engine::lose_later(ucx_connection& path, std::string_view during, ucs_status_t status) {
  later([this, id = path.id, during, status] {
    auto* lost = find(id);
    if (lost == nullptr) return;
    lose(*lost, error{refusal(*lost, status) ? errc::refused : errc::path_lost,
                      "the path to " + short_name(lost->peer) + " failed while " + std::string{during} +
                          ": " + ucs_status_string(status)});
  });
}

void ucx_engine::drain(ucx_connection& path) {
  path.state = path_state::draining;
  cancel_timer(path);
  unlist(path);
  if (path.ended_for_good) bury(path.peer); // UX-2
  draining_.push_back(&path);
  std::erase(greeting_, &path);
  drop_queue(path);
  fail_outgoing(path, end_of(path)); // before UCX cancels the pieces, which says less
  close_endpoint(path);
  if (!stopped_) set_timer(path, settings_.linger_timeout);
  announce_loss(path);
  kick();
}

void ucx_engine::close_endpoint(ucx_connection& path) {
  invariant(!path.endpoint_closing, "UX-4: an endpoint is closed exactly once");
  path.endpoint_closing = true;
  if (path.endpoint == nullptr) {
    path.endpoint_closed = true;
    return;
  }
  ucp_request_param_t params{};
  params.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS | UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
  params.flags = UCP_EP_CLOSE_FLAG_FORCE;
  params.cb.send = &ucx_engine::on_endpoint_closed;
  params.user_data = &path;
  auto* request = ucp_ep_close_nbx(path.endpoint, &params);
  if (!UCS_PTR_IS_PTR(request)) path.endpoint_closed = true;
}

void ucx_engine::on_endpoint_closed(void* request, ucs_status_t, void* path) {
  static_cast<ucx_connection*>(path)->endpoint_closed = true;
  ucp_request_free(request);
}

// May come twice, or inside any call into UCX.
void ucx_engine::on_endpoint_error(void* argument, ucp_ep_h, ucs_status_t status) {
  auto& path = *static_cast<ucx_connection*>(argument);
  if (path.state != path_state::draining) path.engine->lose_later(path, "it was watched", status);
}

// What the listener lent comes back first; then the loss, once.
void ucx_engine::announce_loss(ucx_connection& path) {
  release_incoming(path, end_of(path));
  if (!receiving(path)) tell_loss(path);
}

void ucx_engine::tell_loss(ucx_connection& path) {
  if (!path.loss) return;
  const auto cause = std::move(*path.loss);
  path.loss.reset();
  if (listener_ != nullptr) listener_->on_path_lost(path.peer, cause);
}

bool ucx_engine::gone(ucx_connection& path) {
  announce_loss(path);
  if (!path.endpoint_closed || path.sends_out != 0 || !path.outgoing.empty() || !path.incoming.empty())
    return false;
  cancel_timer(path);
  connections_.erase(path.id);
  return true;
}

void ucx_engine::set_timer(ucx_connection& path, duration delay) {
  cancel_timer(path);
  path.timer = clock_.call_after(delay, [weak = weak_from_this(), id = path.id] {
    const auto self = weak.lock();
    if (self == nullptr || self->stopped_) return;
    if (auto* found = self->find(id)) self->on_timer(*found);
  });
}

void ucx_engine::on_timer(ucx_connection& path) {
  path.timer = 0;
  if (path.state == path_state::connecting) {
    lose(path, error{errc::path_lost, "no handshake with " + short_name(path.peer) + " within " +
                                          format_duration(settings_.handshake_timeout)});
  } else if (path.state == path_state::lingering) {
    drain(path);
  } else {
    tell_loss(path); // UCX holds a receive that it should have failed: that span comes back later
  }
  kick();
}

void ucx_engine::cancel_timer(ucx_connection& path) {
  clock_.cancel(std::exchange(path.timer, 0));
}

std::string ucx_engine::lanes(incarnation_id peer) const {
  const auto* path = find(peer);
  return path == nullptr || path->endpoint == nullptr ? std::string{} : lanes_of(path->endpoint);
}

} // namespace troupe
