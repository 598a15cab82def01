#include "actors/faults/fault_injector.hpp"

#include <csignal>
#include <stdexcept>

namespace troupe {

fault_injector::fault_injector(fault_plan plan, std::uint64_t seed, const clock_seam& clock,
                               own_process& self, black_box& box, damage damage_checkpoint)
    : plan_{std::move(plan)}
    , seed_{seed}
    , clock_{clock}
    , self_{self}
    , box_{box}
    , damage_checkpoint_{std::move(damage_checkpoint)} {}

void fault_injector::update(rank_id rank, std::uint32_t world, const std::string& fired,
                            time_point job_started) {
  const std::lock_guard lock{mutex_};
  if (auto known = fired_faults::decode(fired)) fired_ = *known;
  rank_ = rank;
  world_ = world;
  job_started_ = job_started;
  previous_step_ = previous_read_ = previous_checkpoint_ = step_id{0};
}

std::vector<std::size_t> fault_injector::due_now(fault_role role, step_id computing, step_id& previous) {
  if (plan_.empty()) return {};
  const std::lock_guard lock{mutex_};
  const step_id before = previous == step_id{0} ? step_id{computing.value() - 1} : previous;
  previous = computing;
  return due(plan_,
             {.role = role,
              .rank = rank_,
              .world = world_,
              .previous = before,
              .step = computing,
              .elapsed = clock_.now() - job_started_,
              .seed = seed_},
             fired_);
}

void fault_injector::mark(std::size_t index) {
  const std::lock_guard lock{mutex_};
  fired_.mark(index, rank_);
  box_.fault_for_ns.store(plan_[index].lasting.value_or(duration{0}).count());
  box_.fault_index.store(index + 1);
  box_.fault_ns.store(to_ns(clock_.now())); // FI-1: last, it says that the others are there
}

void fault_injector::strike(std::size_t index) {
  mark(index);
  switch (plan_[index].kind) {
  case fault_kind::kill:
    return self_.raise_signal(SIGKILL);
  case fault_kind::segv:
    return self_.raise_signal(SIGSEGV);
  case fault_kind::stop:
    return self_.raise_signal(SIGSTOP);
  case fault_kind::exit:
    return self_.exit_now(plan_[index].code.value_or(fault::code_default));
  case fault_kind::throw_error:
    throw std::runtime_error{"injected fault " + to_text(plan_[index])};
  default:
    return; // refused at start (check_injectable)
  }
}

void fault_injector::on_step(step_id computing) {
  // One rank damages what all share: twice would be not at all.
  const auto damages = rank_ == rank_id{0}
                           ? due_now(fault_role::checkpointer, computing, previous_checkpoint_)
                           : std::vector<std::size_t>{};
  for (const auto index : damages) {
    mark(index);
    const auto& target = plan_[index].target;
    damage_checkpoint_(target.which == fault_target::choice::newest ? "newest"
                                                                    : std::to_string(target.number));
  }
  for (const auto index : due_now(fault_role::worker, computing, previous_step_))
    strike(index);
}

void fault_injector::on_read(step_id computing) {
  for (const auto index : due_now(fault_role::prefetcher, computing, previous_read_))
    strike(index);
}

} // namespace troupe
