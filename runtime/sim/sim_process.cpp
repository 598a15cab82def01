#include "runtime/sim/sim_process.hpp"

#include <csignal>

#include "runtime/sim/sim_world.hpp"

namespace troupe {

void sim_executor::post(task work) {
  if (owner_.closed(*this)) return; // SW-3
  queue_.push_back(std::move(work));
  world_.list(*this);
}

time_point sim_clock::now() const {
  return world_.hosts().local_time(owner_.host(), world_.now());
}

timer_id sim_clock::call_after(duration delay, task work) {
  if (!owner_.alive()) return 0;
  return world_.schedule(world_.hosts().world_duration(owner_.host(), delay), &owner_.loop, std::move(work));
}

void sim_clock::cancel(timer_id timer) {
  world_.cancel(timer);
}

std::uint64_t sim_entropy::next() {
  const auto high = world_.draw(std::uint64_t{1} << 32);
  return (high << 32) | world_.draw(std::uint64_t{1} << 32);
}

void sim_own_process::raise_signal(int signal_number) {
  if (signal_number == SIGSTOP) return world_.pause(owner_.pid(), true);
  world_.kill(owner_.pid(), signal_number);
}

void sim_own_process::exit_now(int code) {
  world_.exit_now(owner_.pid(), code);
}

sim_process::sim_process(sim_world& world, std::int64_t pid, sim_host_id host)
    : loop{world, *this, sim_queue::loop}
    , device_queue{world, *this, sim_queue::device}
    , reader{world, *this, sim_queue::reader}
    , storage_thread{world, *this, sim_queue::storage}
    , clock{world, *this}
    , random{world}
    , compute{device_queue}
    , self{world, *this}
    , box{std::make_shared<black_box>()}
    , pid_{pid}
    , host_{host} {}

sim_process::~sim_process() = default;

void sim_process::request_exit(int code) {
  if (ended_ || leaving_) return;
  leaving_ = true;
  exit_code_ = code;
  if (storage_thread.queue_.empty()) loop.world_.end(*this, {pid_, false, code});
}

} // namespace troupe
