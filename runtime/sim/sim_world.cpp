#include "runtime/sim/sim_world.hpp"

#include <algorithm>

#include "runtime/base/invariant.hpp"

namespace troupe {
namespace {

// What a trace record is about; the executors come first, by sim_queue.
enum class traced : std::uint64_t { queue_first = 0, timer = 4, killed = 5, paused = 6, started = 7 };

std::uint64_t mark(traced what, std::int64_t pid) {
  return static_cast<std::uint64_t>(pid) * 8 + static_cast<std::uint64_t>(what);
}

} // namespace

// --- processes ------------------------------------------------------------------------------------------

sim_process& sim_world::start(process_spec spec, duration delay, program_factory make, sim_host_id host) {
  const auto pid = next_pid_++;
  auto& process = *processes_.emplace(pid, std::make_unique<sim_process>(*this, pid, host)).first->second;
  process.spec = std::move(spec);
  process.make_ = std::move(make);
  trace(mark(traced::started, pid), 0);
  schedule(delay, &process.loop, [&process] { process.program_ = process.make_(process); });
  return process;
}

void sim_world::kill(std::int64_t pid, int signal_number) {
  if (auto* process = find(pid)) end(*process, {pid, true, signal_number});
}

void sim_world::exit_now(std::int64_t pid, int code) {
  if (auto* process = find(pid)) end(*process, {pid, false, code});
}

void sim_world::pause(std::int64_t pid, bool paused) {
  auto* process = find(pid);
  if (process == nullptr || process->paused_ == paused) return;
  trace(mark(traced::paused, pid), paused ? 1 : 0);
  process->paused_ = paused;
  if (paused) return;
  for (auto* queue : process->queues()) {
    if (!queue->queue_.empty()) list(*queue);
  }
}

void sim_world::on_end(std::int64_t pid, std::function<void(const process_exit&)> handler) {
  if (auto* process = find(pid)) process->on_end_.push_back(std::move(handler));
}

sim_process* sim_world::find(std::int64_t pid) {
  const auto found = processes_.find(pid);
  return found == processes_.end() || found->second->ended_ ? nullptr : found->second.get();
}

std::vector<std::int64_t> sim_world::alive() const {
  std::vector<std::int64_t> pids;
  for (const auto& [pid, process] : processes_) {
    if (process->alive()) pids.push_back(pid);
  }
  return pids;
}

void sim_world::end(sim_process& process, process_exit how) {
  if (process.ended_) return;
  trace(mark(traced::killed, process.pid_), static_cast<std::uint64_t>(how.code));
  process.ended_ = true;
  process.end_ = how;
  dying_.emplace_back(process.pid_, how);
}

void sim_world::drop_timers_of(const sim_process& process) {
  for (auto it = timers_.begin(); it != timers_.end();) {
    if (it->second.where == nullptr || &it->second.where->owner_ != &process) {
      ++it;
      continue;
    }
    due_.erase({it->second.due, it->first});
    it = timers_.erase(it);
  }
}

// The memory of ended processes goes between two tasks: never under a task of theirs.
void sim_world::reap() {
  while (!dying_.empty()) {
    const auto [pid, how] = dying_.front();
    dying_.erase(dying_.begin());
    auto& process = *processes_.at(pid);
    for (auto* queue : process.queues()) {
      std::erase(runnable_, queue);
      queue->queue_.clear();
    }
    drop_timers_of(process);
    process.program_.reset();
    process.make_ = nullptr;
    const auto handlers = std::exchange(process.on_end_, {});
    for (const auto& handler : handlers)
      handler(how);
  }
}

// --- the driver -----------------------------------------------------------------------------------------

sim_world::sim_world(std::uint64_t seed, sim_world_settings settings)
    : seed_{seed}
    , settings_{settings}
    , random_{seed, stream_of("sim_world")} {}

sim_world::~sim_world() {
  close();
}

// What waits goes before the programs that it refers to.
void sim_world::close() {
  for (auto& [pid, process] : processes_)
    process->ended_ = true; // nothing is posted any more
  runnable_.clear();
  for (auto& [pid, process] : processes_) {
    for (auto* queue : process->queues())
      queue->queue_.clear();
  }
  timers_.clear();
  due_.clear();
  for (auto& [pid, process] : processes_)
    process->program_.reset();
}

std::uint64_t sim_world::draw(std::uint64_t below) {
  const auto value = below <= 1 ? 0 : random_.bits(draws_) % below;
  ++draws_;
  return value;
}

duration sim_world::draw_between(duration low, duration high) {
  const auto width = static_cast<std::uint64_t>(std::max(high - low, duration{0}).count());
  return low + duration{static_cast<duration::rep>(draw(width + 1))};
}

void sim_world::trace(std::uint64_t what, std::uint64_t detail) {
  const std::array<std::uint64_t, 3> record{what, detail, static_cast<std::uint64_t>(to_ns(now_))};
  trace_.add(std::as_bytes(std::span{record}));
}

timer_id sim_world::schedule(duration delay, sim_executor* where, task work) {
  const auto id = next_timer_++;
  const auto due = now_ + std::max(delay, duration{0});
  timers_.emplace(id, timer{due, where, std::move(work)});
  due_.emplace(due, id);
  return id;
}

// Also right for one that has been handed to its executor and waits there: it does not run any more.
void sim_world::cancel(timer_id id) {
  const auto known = timers_.find(id);
  if (known == timers_.end()) return;
  due_.erase({known->second.due, id});
  const auto discarded = std::move(known->second.work);
  timers_.erase(known);
}

void sim_world::list(sim_executor& queue) {
  if (queue.listed_ || queue.busy_ || queue.owner_.paused_) return;
  queue.listed_ = true;
  runnable_.push_back(&queue);
}

const sim_cost* sim_world::cost_of(const sim_executor& queue) const {
  switch (queue.which_) {
  case sim_queue::device:
    return &settings_.device;
  case sim_queue::reader:
    return &settings_.reader;
  case sim_queue::storage:
    return &settings_.storage;
  case sim_queue::loop:
    return nullptr;
  }
  return nullptr;
}

// After a task: the executor is busy for the task's virtual time, then it may run the next one.
void sim_world::rest(sim_executor& queue) {
  const auto* cost = cost_of(queue);
  const auto factor = std::exchange(queue.stretch_, 1.0);
  if (cost == nullptr || cost->max <= duration{0}) {
    queue.busy_ = false;
    if (!queue.queue_.empty()) list(queue);
    return;
  }
  const auto slowness = hosts_.slowness(queue.owner_.host()) * factor;
  const auto length = static_cast<double>(draw_between(cost->min, cost->max).count()) * slowness;
  after(duration{static_cast<duration::rep>(length)}, [this, held = &queue] {
    held->busy_ = false;
    if (held->owner_.alive() && !held->queue_.empty()) list(*held);
  });
}

bool sim_world::run_one() {
  if (runnable_.empty()) return false;
  const auto index = draw(runnable_.size()); // SW-2
  auto& queue = *runnable_[index];
  runnable_.erase(runnable_.begin() + static_cast<std::ptrdiff_t>(index));
  queue.listed_ = false;
  auto& owner = queue.owner_;
  if (owner.paused_ || owner.closed(queue) || queue.queue_.empty()) return true;
  task work = std::move(queue.queue_.front());
  queue.queue_.pop_front();
  trace(mark(traced::queue_first, owner.pid()) + static_cast<std::uint64_t>(queue.which_), index);
  queue.busy_ = true; // what the task posts to its own executor waits for its end, too
  work();
  if (owner.ended_) return true;
  if (owner.leaving_ && owner.storage_thread.queue_.empty()) {
    end(owner, {owner.pid(), false, owner.exit_code_});
    return true;
  }
  rest(queue);
  return true;
}

// All that is due at the next moment: the seed chooses among what they make runnable.
bool sim_world::fire_timers() {
  if (due_.empty()) return false;
  now_ = std::max(now_, due_.begin()->first); // SW-4
  while (!due_.empty() && due_.begin()->first <= now_) {
    const auto id = due_.begin()->second;
    due_.erase(due_.begin());
    auto* where = timers_.at(id).where;
    if (where == nullptr)
      run_timer(id);
    else if (where->owner_.closed(*where))
      timers_.erase(id);
    else
      where->post([this, id] { run_timer(id); });
  }
  return true;
}

void sim_world::run_timer(timer_id id) {
  const auto known = timers_.find(id);
  if (known == timers_.end()) return; // cancelled meanwhile
  task work = std::move(known->second.work);
  timers_.erase(known);
  trace(static_cast<std::uint64_t>(traced::timer), id);
  work();
}

bool sim_world::run_until(const std::function<bool()>& over, std::uint64_t events_max) {
  for (std::uint64_t i = 0; i < events_max; ++i) {
    reap();
    if (over()) return true;
    reap();
    ++events_;
    if (!run_one() && !fire_timers()) return over();
  }
  reap();
  return over();
}

} // namespace troupe
