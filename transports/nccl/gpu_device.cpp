#include "transports/nccl/gpu_device.hpp"

#include <algorithm>
#include <utility>

#include "runtime/base/invariant.hpp"

namespace troupe {

gpu_device::gpu_device(gpu& calls, gpu_surroundings surroundings, gpu_settings settings)
    : calls_{calls}
    , around_{std::move(surroundings)}
    , settings_{std::move(settings)}
    , life_{calls.has(), settings_.life} {}

std::shared_ptr<gpu_device> gpu_device::make(gpu& calls, gpu_surroundings surroundings,
                                             gpu_settings settings) {
  return std::shared_ptr<gpu_device>{new gpu_device{calls, std::move(surroundings), std::move(settings)}};
}

// One event of the life: orders go to the owner in the order of the events, a new deadline to the loop.
template <class Event>
void gpu_device::event(const Event& happened) {
  std::unique_lock lock{mutex_};
  const auto deadline = life_.deadline();
  auto orders = happened(life_, around_.clock.now());
  const auto ends = [](const life_order& order) { return order.what == life_action::end_process; };
  if (std::ranges::any_of(orders, ends)) {
    const auto why = life_.failure().text;
    lock.unlock();
    around_.end_process(why); // not through the owner, which may hang, and before anybody is told of the end
    lock.lock();
  }
  if (!orders.empty()) {
    ++orders_waiting_;
    around_.owner.post([self = shared_from_this(), orders = std::move(orders)] { self->carry_out(orders); });
  }
  if (life_.deadline() != deadline) around_.loop.post([self = shared_from_this()] { self->rearm(); });
}

// --- what communicators ask for ---

expected<void> gpu_device::join(comm_request request, std::shared_ptr<gpu_member> member) {
  const auto generation = request.generation;
  const auto origin = request.origin;
  {
    const std::lock_guard lock{mutex_};
    if (generation <= life_.newest())
      return error{errc::stale_generation,
                   "generation " + to_string(generation) + " is not after " + to_string(life_.newest())};
  }
  requests_[generation] = std::move(request);
  members_[generation] = std::move(member);
  event([&](comm_life& life, time_point now) { return life.begin(now, generation, origin); });
  return {};
}

void gpu_device::leave(generation_id generation) {
  members_.erase(generation);
  requests_.erase(generation);
  event([&](comm_life& life, time_point now) { return life.close(now, generation); });
}

void gpu_device::abort(generation_id generation, const std::string& why) noexcept {
  event([&](comm_life& life, time_point now) { return life.fault(now, generation, {errc::aborted, why}); });
}

void gpu_device::report(generation_id generation, const nccl_answer& failed) {
  event([&](comm_life& life, time_point now) {
    return life.status(now, generation, call_status::failed, failed.why);
  });
}

void gpu_device::report(generation_id generation, const error& failed) {
  event([&](comm_life& life, time_point now) { return life.fault(now, generation, failed); });
}

void gpu_device::set(const life_settings& deadlines) {
  const std::lock_guard lock{mutex_};
  life_.set(deadlines);
}

bool gpu_device::may_issue(generation_id generation) const {
  const std::lock_guard lock{mutex_};
  return life_.may_issue(generation);
}

life_state gpu_device::state() const {
  const std::lock_guard lock{mutex_};
  return life_.state();
}

// --- orders ---

void gpu_device::carry_out(const life_orders& orders) {
  {
    const std::lock_guard lock{mutex_};
    --orders_waiting_;
  }
  for (const auto& order : orders)
    carry_out(order);
  look_anew();
}

void gpu_device::carry_out(const life_order& order) {
  const auto member = members_.find(order.generation);
  switch (order.what) {
  case life_action::init:
  case life_action::shrink:
    return begin(order);
  case life_action::revoke:
    return expect_done(order.generation,
                       of_all(comms_, [this](nccl::comm one) { return calls_.revoke(one); }));
  case life_action::finalize:
    return expect_done(order.generation,
                       of_all(comms_, [this](nccl::comm one) { return calls_.finalize(one); }));
  case life_action::destroy:
    for (auto* one : std::exchange(comms_, {}))
      (void)calls_.destroy(one); // whatever it says, the handle is gone
    return;
  case life_action::abort_parent:
    return start_abort(std::exchange(comms_, std::exchange(smaller_, {})));
  case life_action::abort_all: {
    auto all = std::exchange(comms_, {});
    const auto more = std::exchange(smaller_, {});
    all.insert(all.end(), more.begin(), more.end());
    std::erase(all, nullptr);
    return start_abort(std::move(all));
  }
  case life_action::drain:
    return drain();
  case life_action::poison: {
    std::unique_lock lock{mutex_};
    const error why = life_.failure();
    lock.unlock();
    if (member != members_.end()) member->second->poison(why);
    return;
  }
  case life_action::announce:
    if (member != members_.end()) member->second->ready(comms_);
    return;
  case life_action::end_process: // done where the event was
    return;
  }
}

void gpu_device::begin(const life_order& order) {
  auto request = requests_.extract(order.generation);
  if (request.empty()) // it has left already
    return report(order.generation, error{errc::aborted, "it was closed"});
  const auto& what = request.mapped();
  expect_done(order.generation, order.what == life_action::init ? begin(what) : shrink(what));
}

nccl_answer gpu_device::begin(const comm_request& what) {
  comms_.assign(what.ids.size(), nullptr);
  nccl_answer whole;
  for (std::size_t i = 0; i < comms_.size() && !whole.failed(); ++i)
    whole = calls_.init(comms_[i], what.ids[i], what.world, what.rank);
  return whole;
}

nccl_answer gpu_device::shrink(const comm_request& what) {
  if (comms_.size() != what.communicators)
    return {nccl::result::invalid_usage, "the generation before had another number of communicators"};
  smaller_.assign(comms_.size(), nullptr);
  nccl_answer whole;
  for (std::size_t i = 0; i < comms_.size() && !whole.failed(); ++i)
    whole = calls_.shrink(comms_[i], what.without, smaller_[i]);
  return whole;
}

template <class Call>
nccl_answer gpu_device::of_all(const std::vector<nccl::comm>& which, Call call) {
  nccl_answer whole;
  for (auto* one : which) {
    auto answer = call(one);
    if (answer.failed()) return answer;
    if (answer.under_way()) whole = std::move(answer);
  }
  return whole;
}

void gpu_device::expect_done(generation_id generation, const nccl_answer& answer) {
  if (answer.failed()) report(generation, answer); // else the looks find out
}

void gpu_device::start_abort(std::vector<nccl::comm> handles) {
  const auto returned = [](comm_life& life, time_point now) { return life.aborted(now, true); };
  if (handles.empty()) return event(returned);
  around_.spawn([self = shared_from_this(), handles = std::move(handles), returned] {
    const bool clean = !self->calls_.abort(handles).failed();
    if (clean) return self->event(returned);
    self->event([](comm_life& life, time_point now) { return life.aborted(now, false); });
  });
}

void gpu_device::drain() {
  if (calls_.mark()) return; // looks find out when it is reached
  event([](comm_life& life, time_point now) { return life.drained(now, false); });
}

// --- looks ---

void gpu_device::look_soon() {
  if (std::exchange(looking_, true)) return;
  auto self = shared_from_this();
  if (++looks_ <= settings_.eager_looks) return around_.owner.post([self] { self->look(); });
  around_.loop.post([self] {
    (void)self->around_.clock.call_after(self->settings_.look_interval,
                                         [self] { self->around_.owner.post([self] { self->look(); }); });
  });
}

void gpu_device::look_anew() {
  looks_ = 0;
  look_soon();
}

void gpu_device::look() {
  looking_ = false;
  bool busy = ask_library();
  const auto members = members_; // a completion may let one leave
  for (const auto& [generation, member] : members)
    busy = (may_issue(generation) && member->look()) || busy;
  if (busy) look_soon();
}

// True while the library or the device is waited for.
bool gpu_device::ask_library() {
  std::unique_lock lock{mutex_};
  if (orders_waiting_ > 0) return true; // the handles are not yet those of the state
  const auto state = life_.state();
  const auto generation = life_.generation();
  const bool asks = life_.asks_status();
  const bool drains = life_.asks_drain();
  lock.unlock();
  if (drains) {
    const auto reached = calls_.reached();
    if (!reached || *reached)
      event([&](comm_life& life, time_point now) { return life.drained(now, reached.has_value()); });
    return true;
  }
  const auto& which = state == life_state::shrinking ? smaller_ : comms_;
  if (!asks || which.empty() || std::ranges::count(which, nullptr) > 0) return false;
  const auto answer = of_all(which, [this](nccl::comm one) { return calls_.status(one); });
  const auto said = answer.done()        ? call_status::done
                    : answer.under_way() ? call_status::under_way
                                         : call_status::failed;
  event([&](comm_life& life, time_point now) { return life.status(now, generation, said, answer.why); });
  return true;
}

// --- deadlines, on the loop ---

void gpu_device::rearm() {
  if (timer_ != 0) around_.clock.cancel(std::exchange(timer_, 0));
  std::unique_lock lock{mutex_};
  const auto deadline = life_.deadline();
  lock.unlock();
  if (!deadline) return;
  const auto left = std::max(*deadline - around_.clock.now(), duration{0});
  timer_ = around_.clock.call_after(left, [self = shared_from_this()] {
    self->timer_ = 0;
    self->event([](comm_life& life, time_point now) { return life.tick(now); });
    self->rearm();
  });
}

// --- memory ---

void gpu_device::retire(task work) {
  {
    const std::lock_guard lock{mutex_};
    retiring_.push_back(std::move(work));
  }
  around_.owner.post([self = shared_from_this()] { self->run_retiring(); });
}

void gpu_device::run_retiring() {
  std::unique_lock lock{mutex_};
  auto all = std::exchange(retiring_, {});
  lock.unlock();
  for (auto& one : all)
    one();
}

expected<std::byte*> gpu_device::lend(std::size_t bytes, memory_place where) {
  run_retiring();
  std::unique_lock lock{mutex_};
  const bool allowed = life_.may_allocate();
  const bool between = life_.state() == life_state::none;
  lock.unlock();
  for (auto& [memory, one] : memory_)
    if (!one.lent && one.where == where && one.bytes >= bytes) {
      one.lent = true;
      return memory;
    }
  if (!allowed)
    return error{errc::aborted, settings_.name + ": no memory while a communicator is being aborted (NC-7)"};
  if (between) free_unlent();
  auto made = calls_.allocate(bytes, where);
  if (made) memory_[*made] = {bytes, where, true};
  return made;
}

void gpu_device::give_back(std::byte* memory) {
  const auto found = memory_.find(memory);
  invariant(found != memory_.end() && found->second.lent, "NC-11: memory is given back once");
  found->second.lent = false;
}

void gpu_device::free_unlent() {
  std::erase_if(memory_, [this](const auto& entry) {
    if (!entry.second.lent) calls_.release(entry.first, entry.second.where);
    return !entry.second.lent;
  });
}

} // namespace troupe
