#include "runtime/host/event_loop.hpp"

#include <chrono>
#include <exception>
#include <mutex>
#include <utility>

#include <boost/asio/bind_allocator.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>

#include "runtime/base/invariant.hpp"
#include "runtime/host/handler_memory.hpp"
#include "runtime/host/task_ring.hpp"

namespace troupe {
namespace {

constexpr std::size_t tasks_at_start = 256;
constexpr unsigned looks_a_poll = 8; // a loop that spins asks its descriptors at every eighth look

template <class F>
auto die_on_exception(F&& work) noexcept {
  try {
    return work();
  } catch (const std::exception& escaped) {
    invariant_broken(std::string{"EL-2: no exception escapes a task: "} + escaped.what());
  } catch (...) {
    invariant_broken("EL-2: no exception escapes a task");
  }
}

} // namespace

// `ring`, `wake_posted`, `looking` and `closing` are guarded by `mutex`. The io_context is declared last: it
// is destroyed first, while handlers that it still holds may post.
struct event_loop::state {
  mutable std::mutex mutex;
  task_ring ring{tasks_at_start};
  bool wake_posted{false};
  bool looking{false}; // what is posted is seen without a wake-up
  bool closing{false};
  duration spin{0};
  inline_function<bool()> look;
  handler_memory wake_memory;
  boost::asio::io_context io{1};
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work{io.get_executor()};

  // Whatever there is while it spins, or one handler after a sleep.
  void run_some() {
    if (spin > duration{0}) look_around();
    io.run_one();
  }

  // Until there has been nothing for as long as it spins.
  void look_around() {
    set_looking(true);
    bool did = false;
    unsigned looks = 0;
    for (auto end = std::chrono::steady_clock::now() + spin; !io.stopped();) {
      did = (look && look()) || did;
      did = run_posted() || did;
      if (++looks % looks_a_poll != 0) continue;
      did = io.poll() > 0 || did;
      const auto now = std::chrono::steady_clock::now();
      if (std::exchange(did, false)) end = now + spin;
      if (now >= end) break;
    }
    set_looking(false);
  }

  void set_looking(bool looks) {
    std::unique_lock lock{mutex};
    looking = looks;
    if (looks || ring.empty() || std::exchange(wake_posted, true)) return;
    lock.unlock();
    wake();
  }

  bool run_posted() {
    std::unique_lock lock{mutex};
    if (ring.empty()) return false;
    run_ring(lock);
    run_ring(lock);
    return true;
  }

  // One wake-up is under way at a time, so its memory is reused (EL-4).
  void wake() {
    boost::asio::post(io,
                      boost::asio::bind_allocator(handler_allocator<void>{wake_memory}, [this] { turn(); }));
  }

  // What was posted before it, and what that posts (EL-3): mostly the flush of what an actor has sent.
  void turn() {
    std::unique_lock lock{mutex};
    run_ring(lock);
    run_ring(lock);
    const bool more = wake_posted = !looking && !ring.empty();
    lock.unlock();
    if (more) wake();
  }

  void run_ring(std::unique_lock<std::mutex>& lock) {
    for (auto left = ring.size(); left > 0 && !io.stopped(); --left) {
      {
        task work_now = ring.pop();
        lock.unlock();
        work_now();
      }
      lock.lock();
    }
  }
};

event_loop::event_loop()
    : state_{std::make_unique<state>()} {}

event_loop::~event_loop() {
  const std::lock_guard lock{state_->mutex};
  state_->closing = true;
}

void event_loop::post(task work) {
  {
    const std::lock_guard lock{state_->mutex};
    if (state_->closing) return;
    state_->ring.push(std::move(work));
    if (state_->looking || state_->wake_posted) return;
    state_->wake_posted = true;
  }
  state_->wake();
}

void event_loop::run() {
  die_on_exception([this] {
    while (!state_->io.stopped())
      state_->run_some();
  });
  state_->io.restart();
}

void event_loop::stop() {
  state_->io.stop();
}

void event_loop::spin_for(duration longest) {
  state_->spin = longest;
}

void event_loop::look_with(inline_function<bool()> look) {
  state_->look = std::move(look);
}

bool event_loop::run_until(inline_function<bool()> done, duration limit) {
  return die_on_exception([&] {
    const auto deadline = std::chrono::steady_clock::now() + limit;
    while (!done()) {
      if (state_->io.run_one_until(deadline) > 0) continue;
      state_->io.restart();
      return done();
    }
    return true;
  });
}

boost::asio::io_context& event_loop::io() {
  return state_->io;
}

bool event_loop::runs_here() const {
  return state_->io.get_executor().running_in_this_thread();
}

} // namespace troupe
