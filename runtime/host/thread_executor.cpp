#include "runtime/host/thread_executor.hpp"

#include <csignal>
#include <exception>

#include <pthread.h>
#include <sched.h>

#include "runtime/base/invariant.hpp"

namespace troupe {
namespace {

constexpr std::size_t tasks_at_start = 64;

void run_task(task work) noexcept {
  try {
    work();
  } catch (const std::exception& escaped) {
    invariant_broken(std::string{"TE-2: no exception escapes a task: "} + escaped.what());
  } catch (...) {
    invariant_broken("TE-2: no exception escapes a task");
  }
}

} // namespace

thread_executor::thread_executor(std::string name, urgency how)
    : name_{std::move(name)}
    , ring_{tasks_at_start} {
  start(how);
}

thread_executor::~thread_executor() {
  end(phase::discarding);
}

// The thread blocks all signals but those of its own faults: they are the business of the main thread.
void thread_executor::start(urgency how) {
  sigset_t blocked;
  sigset_t before;
  sigfillset(&blocked);
  for (const int own : {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGTRAP})
    sigdelset(&blocked, own);
  pthread_sigmask(SIG_SETMASK, &blocked, &before);
  thread_ = std::thread{[this] { serve(); }};
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  id_ = thread_.get_id();
  if (how == urgency::background) {
    const sched_param none{};
    pthread_setschedparam(thread_.native_handle(), SCHED_BATCH, &none); // a wish: nothing depends on it
  }
  pthread_setname_np(thread_.native_handle(), name_.substr(0, 15).c_str());
}

void thread_executor::post(task work) {
  bool wake = false;
  {
    const std::lock_guard lock{mutex_};
    if (phase_ != phase::running) return;
    ring_.push(std::move(work));
    wake = idle_;
  }
  if (wake) wake_.notify_one();
}

void thread_executor::serve() {
  std::unique_lock lock{mutex_};
  for (;;) {
    while (ring_.empty() && phase_ == phase::running) {
      idle_ = true;
      wake_.wait(lock);
      idle_ = false;
    }
    if (phase_ == phase::discarding || ring_.empty()) return;
    task work = ring_.pop();
    lock.unlock();
    task_began_ = std::chrono::steady_clock::now();
    run_task(std::move(work));
    lock.lock();
    if (rest_.count() != 0) rest(lock);
  }
}

void thread_executor::stretch(double factor) {
  const auto taken = std::chrono::steady_clock::now() - task_began_;
  rest_ = std::chrono::duration_cast<std::chrono::steady_clock::duration>(taken * (factor - 1.0));
}

void thread_executor::rest(std::unique_lock<std::mutex>& lock) {
  wake_.wait_for(lock, std::exchange(rest_, {}), [this] { return phase_ != phase::running; }); // TE-5
}

void thread_executor::finish() {
  end(phase::finishing);
}

void thread_executor::end(phase how) {
  invariant(!runs_here(), "TE-3: a thread executor is not ended from its own thread");
  {
    const std::lock_guard lock{mutex_};
    phase_ = how;
  }
  wake_.notify_one();
  if (thread_.joinable()) thread_.join();
}

} // namespace troupe
