#include "runtime/sim/sim_world.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "runtime/base/invariant.hpp"

namespace troupe {

// --- executors, clock, entropy --------------------------------------------------------------------------

void sim_executor::post(task work) {
  if (!owner_.alive()) return; // SW-3
  queue_.push_back(std::move(work));
  world_.list(*this);
}

time_point sim_clock::now() const {
  return world_.now();
}

timer_id sim_clock::call_after(duration delay, task work) {
  return owner_.alive() ? world_.schedule(delay, &owner_, std::move(work)) : 0;
}

void sim_clock::cancel(timer_id timer) {
  world_.cancel(timer);
}

std::uint64_t sim_entropy::next() {
  const auto high = world_.draw(std::uint64_t{1} << 32);
  return (high << 32) | world_.draw(std::uint64_t{1} << 32);
}

// --- processes ------------------------------------------------------------------------------------------

sim_process::sim_process(sim_world& world, std::int64_t pid)
    : loop{world, *this}
    , device_queue{world, *this}
    , reader{world, *this}
    , storage_thread{world, *this}
    , clock{world, *this}
    , random{world}
    , compute{device_queue}
    , box{std::make_shared<black_box>()}
    , pid_{pid} {}

sim_process::~sim_process() = default;

void sim_process::request_exit(int code) {
  loop.world_.end(*this, {pid_, false, code});
}

sim_process& sim_world::start(process_spec spec, duration delay, program_factory make) {
  const auto pid = next_pid_++;
  auto& process = *processes_.emplace(pid, std::make_unique<sim_process>(*this, pid)).first->second;
  process.spec = std::move(spec);
  process.make_ = std::move(make);
  schedule(delay, &process,
           [&process] { process.loop.post([&process] { process.program_ = process.make_(process); }); });
  return process;
}

void sim_world::kill(std::int64_t pid, int signal_number) {
  if (auto* process = find(pid)) end(*process, {pid, true, signal_number});
}

void sim_world::pause(std::int64_t pid, bool paused) {
  auto* process = find(pid);
  if (process == nullptr) return;
  process->paused_ = paused;
  if (paused) return;
  for (auto* queue : {&process->loop, &process->device_queue, &process->reader, &process->storage_thread}) {
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
  process.ended_ = true;
  process.end_ = how;
  dying_.emplace_back(process.pid_, how);
}

// The memory of ended processes goes between two tasks: never under a task of theirs.
void sim_world::reap() {
  while (!dying_.empty()) {
    const auto [pid, how] = dying_.front();
    dying_.erase(dying_.begin());
    auto& process = *processes_.at(pid);
    for (auto* queue : {&process.loop, &process.device_queue, &process.reader, &process.storage_thread}) {
      std::erase(runnable_, queue);
      queue->queue_.clear();
    }
    for (auto it = timers_.begin(); it != timers_.end();) {
      if (it->second.owner == &process) {
        timer_due_.erase(it->second.id);
        it = timers_.erase(it);
      } else {
        ++it;
      }
    }
    process.program_.reset();
    for (auto& handler : process.on_end_)
      handler(how);
    process.on_end_.clear();
  }
}

// --- the driver -----------------------------------------------------------------------------------------

sim_world::sim_world(std::uint64_t seed)
    : seed_{seed}
    , random_{seed, stream_of("sim_world")} {}

sim_world::~sim_world() {
  for (auto& [pid, process] : processes_)
    process->ended_ = true; // nothing is posted any more
  for (auto& [pid, process] : processes_)
    process->program_.reset();
}

std::uint64_t sim_world::draw(std::uint64_t below) {
  const auto value = below <= 1 ? 0 : random_.bits(draws_) % below;
  ++draws_;
  return value;
}

duration sim_world::draw_between(duration low, duration high) {
  return low +
         duration{static_cast<duration::rep>(draw(static_cast<std::uint64_t>((high - low).count()) + 1))};
}

void sim_world::trace(std::uint64_t what) {
  const std::array<std::uint64_t, 2> record{what, static_cast<std::uint64_t>(to_ns(now_))};
  trace_.add(std::as_bytes(std::span{record}));
}

timer_id sim_world::schedule(duration delay, sim_process* owner, task work) {
  const auto id = next_timer_++;
  const auto due = now_ + std::max(delay, duration{0});
  timers_.emplace(due, timer{id, owner, std::move(work)});
  timer_due_.emplace(id, due);
  return id;
}

void sim_world::cancel(timer_id id) {
  const auto known = timer_due_.find(id);
  if (known == timer_due_.end()) return;
  const auto [begin, end] = timers_.equal_range(known->second);
  const auto found = std::find_if(begin, end, [&](const auto& entry) { return entry.second.id == id; });
  if (found != end) timers_.erase(found);
  timer_due_.erase(known);
}

void sim_world::list(sim_executor& queue) {
  if (queue.listed_ || queue.owner_.paused_) return;
  queue.listed_ = true;
  runnable_.push_back(&queue);
}

bool sim_world::run_one() {
  if (runnable_.empty()) return false;
  const auto index = draw(runnable_.size()); // SW-2
  auto* queue = runnable_[index];
  runnable_.erase(runnable_.begin() + static_cast<std::ptrdiff_t>(index));
  queue->listed_ = false;
  if (queue->owner_.paused_ || queue->queue_.empty()) return true;
  task work = std::move(queue->queue_.front());
  queue->queue_.pop_front();
  trace(static_cast<std::uint64_t>(queue->owner_.pid()) * 8 + index);
  work();
  if (!queue->queue_.empty()) list(*queue);
  return true;
}

bool sim_world::fire_timer() {
  if (timers_.empty()) return false;
  const auto first = timers_.begin();
  now_ = std::max(now_, first->first); // SW-4
  timer due = std::move(first->second);
  timers_.erase(first);
  timer_due_.erase(due.id);
  if (due.owner == nullptr || due.owner->program_ == nullptr) {
    due.work();
  } else {
    due.owner->loop.post(std::move(due.work));
  }
  return true;
}

bool sim_world::run_until(const std::function<bool()>& over, std::uint64_t events_max) {
  reap();
  for (std::uint64_t i = 0; i < events_max; ++i) {
    if (over()) return true;
    ++events_;
    if (!run_one() && !fire_timer()) return over();
    reap();
  }
  return over();
}

} // namespace troupe
