#include "runtime/host/host_clock.hpp"

#include <algorithm>
#include <deque>
#include <vector>

#include <boost/asio/bind_allocator.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include "runtime/base/invariant.hpp"
#include "runtime/host/event_loop.hpp"
#include "runtime/host/handler_memory.hpp"

namespace troupe {
namespace {

// An id is the number of the arming, then the index of the slot.
constexpr unsigned slot_bits = 20;
constexpr std::size_t slots_max = std::size_t{1} << slot_bits;

} // namespace

// Shared with the handlers of pending timers, which may run after the clock has gone.
struct host_clock::state : std::enable_shared_from_this<host_clock::state> {
  struct slot {
    explicit slot(boost::asio::io_context& io)
        : timer{io} {}
    boost::asio::steady_timer timer;
    handler_memory memory;
    timer_id armed{0}; // 0: cancelled or fired
    task work;
  };

  explicit state(event_loop& owner)
      : loop{owner} {}

  timer_id arm(duration delay, task&& work) {
    if (free.empty()) {
      invariant(slots.size() < slots_max, "host_clock: at most 2^20 timers are pending");
      slots.emplace_back(loop.io());
      free.reserve(slots.size());
      free.push_back(slots.size() - 1);
    }
    const auto index = free.back();
    free.pop_back();
    auto& one = slots[index];
    const timer_id id = (++armings << slot_bits) | index;
    one.armed = id;
    one.work = std::move(work);
    one.timer.expires_after(std::max(delay, duration{0}));
    one.timer.async_wait(boost::asio::bind_allocator(
        handler_allocator<void>{one.memory},
        [self = shared_from_this(), index, id](const boost::system::error_code&) { self->done(index, id); }));
    return id;
  }

  // Called once for each arming, fired or cancelled; only then the slot is free again.
  void done(std::size_t index, timer_id id) {
    if (closed) return;
    auto& one = slots[index];
    const bool fires = one.armed == id;
    one.armed = 0;
    task work = std::move(one.work);
    free.push_back(index);
    if (fires) work();
  }

  void cancel(timer_id id) {
    const auto index = static_cast<std::size_t>(id & (slots_max - 1));
    if (id == 0 || index >= slots.size() || slots[index].armed != id) return;
    slots[index].armed = 0;
    const task discarded = std::move(slots[index].work);
    slots[index].timer.cancel();
  }

  void close() {
    closed = true;
    for (auto& one : slots) {
      one.armed = 0;
      const task discarded = std::move(one.work);
      one.timer.cancel();
    }
  }

  event_loop& loop;
  std::deque<slot> slots;
  std::vector<std::size_t> free;
  timer_id armings{0};
  bool closed{false};
};

host_clock::host_clock(event_loop& loop)
    : state_{std::make_shared<state>(loop)} {}

host_clock::~host_clock() {
  state_->close();
}

time_point host_clock::now() const {
  return time_point{std::chrono::steady_clock::now().time_since_epoch()};
}

timer_id host_clock::call_after(duration delay, task work) {
  return state_->arm(delay, std::move(work));
}

void host_clock::cancel(timer_id timer) {
  state_->cancel(timer);
}

std::size_t host_clock::pending() const {
  std::size_t count = 0;
  for (const auto& one : state_->slots)
    count += one.armed != 0 ? 1 : 0;
  return count;
}

} // namespace troupe
