#include "actors/faults/fault_injector.hpp"

#include <algorithm>
#include <csignal>
#include <new>
#include <stdexcept>
#include <utility>

namespace troupe {

fault_injector::fault_injector(fault_plan plan, std::uint64_t seed, means with)
    : plan_{std::move(plan)}
    , seed_{seed}
    , with_{std::move(with)} {}

void fault_injector::update(rank_id rank, std::uint32_t world, const std::string& fired,
                            time_point job_started) {
  const std::lock_guard lock{mutex_};
  if (auto known = fired_faults::decode(fired)) fired_.merge(*known); // FI-2
  rank_ = rank;
  world_ = world;
  job_started_ = job_started;
  previous_step_ = previous_read_ = previous_checkpoint_ = step_id{0};
}

void fault_injector::hear(const std::string& fired) {
  if (plan_.empty()) return;
  const std::lock_guard lock{mutex_};
  if (auto known = fired_faults::decode(fired)) fired_.merge(*known);
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
              .elapsed = with_.clock.now() - job_started_,
              .seed = seed_},
             fired_);
}

// What was announced is counted already.
void fault_injector::mark(std::size_t index) {
  const std::lock_guard lock{mutex_};
  if (!with_.tell_director) fired_.mark(index, rank_);
  with_.box.fault_for_ns.store(plan_[index].lasting.value_or(duration{0}).count());
  with_.box.fault_index.store(index + 1);
  with_.box.fault_ns.store(to_ns(with_.clock.now())); // FI-1: last, it says that the others are there
}

void fault_injector::strike(std::size_t index) {
  mark(index);
  const auto& what = plan_[index];
  if (strikes_seam(what.kind)) return with_.switches->turn_on(what);
  switch (what.kind) {
  case fault_kind::kill:
    return with_.self.raise_signal(SIGKILL);
  case fault_kind::segv:
    return with_.self.raise_signal(SIGSEGV);
  case fault_kind::stop:
    return with_.self.raise_signal(SIGSTOP);
  case fault_kind::exit:
    return with_.self.exit_now(what.code.value_or(fault::code_default));
  case fault_kind::throw_error:
    throw std::runtime_error{"injected fault " + to_text(what)};
  case fault_kind::oom:
    throw std::bad_alloc{};
  case fault_kind::bit_flip:
    return with_.damage_checkpoint(
        what.target.which == fault_target::choice::newest ? "newest" : std::to_string(what.target.number));
  default:
    invariant_broken("FI-3: a worker strikes with every kind but director-kill");
  }
}

std::vector<std::size_t> fault_injector::due_in(step_id computing) {
  std::vector<std::size_t> faults;
  // One rank strikes what all share: to damage it twice would be not at all.
  if (rank_ == rank_id{0}) faults = due_now(fault_role::checkpointer, computing, previous_checkpoint_);
  for (const auto index : due_now(fault_role::worker, computing, previous_step_))
    faults.push_back(index);
  return faults;
}

bool fault_injector::ready(step_id computing) {
  if (!with_.tell_director) return true;
  if (announced_.empty()) {
    for (const auto index : due_in(computing)) {
      const std::lock_guard lock{mutex_};
      announced_.push_back({index, rank_, fired_.on(index, rank_) + 1});
    }
    for (const auto& one : announced_)
      with_.tell_director(one.fault);
  }
  const std::lock_guard lock{mutex_};
  return std::ranges::all_of(
      announced_, [this](const announced& one) { return fired_.on(one.fault, one.rank) >= one.strikes; });
}

void fault_injector::on_step(step_id computing) {
  if (with_.tell_director) {
    for (const auto& one : std::exchange(announced_, {}))
      strike(one.fault);
    return;
  }
  for (const auto index : due_in(computing))
    strike(index);
}

// A reader's failure is healed in its process, which lives on and remembers it.
void fault_injector::on_read(step_id computing) {
  for (const auto index : due_now(fault_role::prefetcher, computing, previous_read_)) {
    if (with_.tell_director) {
      with_.tell_director(index);
      const std::lock_guard lock{mutex_};
      fired_.mark(index, rank_);
    }
    strike(index);
  }
}

} // namespace troupe
