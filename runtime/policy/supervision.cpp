#include "runtime/policy/supervision.hpp"

#include <algorithm>
#include <utility>

#include "runtime/base/invariant.hpp"
#include "runtime/base/probe.hpp"
#include "runtime/base/units.hpp"

namespace troupe {

supervision::supervision(supervision_settings settings, std::vector<child_spec> children)
    : settings_{settings}
    , specs_{std::move(children)}
    , children_(specs_.size())
    , budget_{settings.intensity}
    , pause_{settings.pause}
    , rng_{settings.seed, stream_of("supervision")} {}

bool supervision::alive(const child_state& c) {
  return c.now == condition::starting || c.now == condition::running || c.now == condition::stopping ||
         c.now == condition::killing;
}

bool supervision::restarts_after(const child_spec& spec, bool normal) const {
  return spec.restart == restart_type::permanent || (spec.restart == restart_type::transient && !normal);
}

std::uint64_t supervision::add_timer(duration delay, supervision_actions& out) {
  out.emplace_back(set_timer{++last_timer_, delay});
  return last_timer_;
}

// -- Events --

supervision_actions supervision::start(time_point) {
  supervision_actions out;
  if (phase_ != phase::idle) return out;
  for (auto& each : children_)
    each.marked = true;
  phase_ = phase::running;
  start_next(out);
  return out;
}

supervision_actions supervision::child_started(child_index index, child_life life, time_point now) {
  supervision_actions out;
  auto& c = children_[index];
  if (c.life != life || c.now != condition::starting) return out; // SV-8
  c.now = condition::running;
  c.started_at = now;
  advance(out);
  return out;
}

supervision_actions supervision::child_ended(child_index index, child_life life, std::optional<error> cause,
                                             time_point now) {
  supervision_actions out;
  auto& c = children_[index];
  if (c.life != life || !alive(c)) return out; // SV-8
  const bool starting = c.now == condition::starting;
  const bool asked = c.now == condition::stopping || c.now == condition::killing;
  c.now = condition::down;
  c.timer = 0;
  if (!asked) c.own_failure = cause;
  const bool for_good = asked ? specs_[index].restart == restart_type::temporary
                              : !restarts_after(specs_[index], !cause.has_value());
  if (for_good) {
    c.now = condition::gone; // SV-9
    c.marked = false;
  }
  // A group member's own end while its group stops is what was wanted anyway.
  const bool expected =
      asked || for_good || phase_ == phase::ending || (phase_ == phase::stopping && c.marked);
  static const error ended_early{errc::actor_stopped, "ended, though it should run for ever"};
  if (expected)
    advance(out);
  else
    on_failure(index, cause.value_or(ended_early), starting, now, out);
  return out;
}

supervision_actions supervision::timer_fired(std::uint64_t timer, time_point now) {
  supervision_actions out;
  if (timer == 0) return out;
  if (timer == group_timer_) {
    group_timer_ = 0;
    phase_ = phase::running;
    start_next(out);
    return out;
  }
  const auto place = std::ranges::find(children_, timer, &child_state::timer);
  if (place == children_.end()) return out; // SV-8
  const auto index = static_cast<child_index>(place - children_.begin());
  place->timer = 0;
  if (place->now == condition::waiting) {
    place->now = condition::down;
    place->marked = true;
    advance(out);
  } else if (place->now == condition::stopping) { // SV-6
    place->now = condition::killing;
    out.emplace_back(kill_child{index, place->life});
    place->timer = add_timer(settings_.kill_grace, out);
  } else if (place->now == condition::killing) {
    ++given_up_;
    return child_ended(index, place->life, error{errc::timed_out, "did not end when killed"}, now);
  }
  return out;
}

supervision_actions supervision::stop(time_point) {
  supervision_actions out;
  if (phase_ == phase::ending || phase_ == phase::ended) return out;
  phase_ = phase::ending;
  group_timer_ = 0;
  advance(out);
  return out;
}

void supervision::progress() {
  for (auto& each : children_) {
    each.last_failure.reset();
    each.same_failures = 0;
  }
}

// -- One step further --

void supervision::advance(supervision_actions& out) {
  switch (phase_) {
  case phase::running:
    return start_next(out);
  case phase::stopping:
    return regroup(out);
  case phase::ending:
    return end_if_all_down(out);
  default:
    return;
  }
}

void supervision::start_next(supervision_actions& out) {
  const auto is_starting = [](const child_state& c) { return c.now == condition::starting; };
  if (std::ranges::any_of(children_, is_starting)) return; // SV-1
  const auto next = std::ranges::find_if(
      children_, [](const child_state& c) { return c.marked && c.now == condition::down; });
  if (next == children_.end()) return;
  next->marked = false;
  next->now = condition::starting;
  ++next->life;
  const auto index = static_cast<child_index>(next - children_.begin());
  out.emplace_back(start_child{index, next->life, std::exchange(next->own_failure, std::nullopt)});
}

// Sees to it that the last child alive is being stopped (SV-1).
bool supervision::stop_last(supervision_actions& out, bool marked_only) {
  for (auto index = children_.size(); index-- > 0;) {
    auto& c = children_[index];
    if (!alive(c) || (marked_only && !c.marked)) continue;
    if (c.now == condition::starting || c.now == condition::running) {
      c.now = condition::stopping;
      out.emplace_back(stop_child{index, c.life});
      c.timer = add_timer(specs_[index].shutdown_grace, out);
    }
    return true;
  }
  return false;
}

void supervision::regroup(supervision_actions& out) {
  if (stop_last(out, true)) return;
  const auto delay = std::exchange(group_delay_, duration{0});
  if (delay > duration{0}) {
    phase_ = phase::waiting;
    group_timer_ = add_timer(delay, out);
    return;
  }
  phase_ = phase::running;
  start_next(out);
}

void supervision::end_if_all_down(supervision_actions& out) {
  if (stop_last(out, false)) return;
  phase_ = phase::ended; // SV-7
  if (end_cause_)
    out.emplace_back(escalated{*end_cause_});
  else
    out.emplace_back(supervision_stopped{});
}

// -- Failures --

void supervision::on_failure(child_index index, const error& cause, bool starting, time_point now,
                             supervision_actions& out) {
  if (auto end = verdict(index, cause, now)) return escalate(std::move(*end), out);
  const auto delay = wait_before_restart(now);
  if (settings_.strategy == restart_strategy::one_for_one)
    restart_alone(index, delay, starting, out);
  else
    restart_group(index, delay, out);
}

// The error that ends it all, if this failure is one too many.
std::optional<error> supervision::verdict(child_index index, const error& cause, time_point now) {
  auto& c = children_[index];
  const bool lived_long = c.started_at != time_point{} && now - c.started_at >= settings_.intensity.period;
  const bool same =
      c.last_failure && c.last_failure->code == cause.code && c.last_failure->text == cause.text;
  c.same_failures = same && !lived_long ? c.same_failures + 1 : 1;
  c.last_failure = cause;
  c.started_at = {};
  const error root{errc::budget_spent, cause.text};
  if (c.same_failures >= settings_.same_cause_max) { // SV-5
    probe<"supervision.same_cause_again">::hit();
    return root.at(specs_[index].id).at(std::to_string(c.same_failures) + " times without progress");
  }
  if (budget_.admit(now)) return std::nullopt; // SV-4
  probe<"supervision.budget_spent">::hit();
  return root.at(specs_[index].id)
      .at("after " + std::to_string(settings_.intensity.restarts_max) + " restarts within " +
          format_duration(settings_.intensity.period));
}

duration supervision::wait_before_restart(time_point now) {
  const bool first = !last_restart_ || now - *last_restart_ >= settings_.intensity.period;
  last_restart_ = now;
  if (probe<"supervision.restart_waits">::when(!first)) return pause_.next(rng_.bits(draws_++));
  probe<"supervision.restarts_at_once">::hit();
  pause_.reset();
  return duration{0};
}

void supervision::restart_alone(child_index index, duration delay, bool starting, supervision_actions& out) {
  auto& c = children_[index];
  if (delay == duration{0}) {
    c.marked = true;
  } else if (starting) { // those that start after it wait for it (SV-1)
    c.marked = true;
    phase_ = phase::waiting;
    group_timer_ = add_timer(delay, out);
  } else {
    c.now = condition::waiting;
    c.timer = add_timer(delay, out);
  }
  advance(out);
}

void supervision::restart_group(child_index index, duration delay, supervision_actions& out) {
  const auto first = settings_.strategy == restart_strategy::one_for_all ? child_index{0} : index;
  for (auto i = first; i < children_.size(); ++i) // SV-3
    children_[i].marked = children_[i].now != condition::gone;
  group_delay_ = std::max(group_delay_, delay);
  group_timer_ = 0;
  phase_ = phase::stopping;
  regroup(out);
}

void supervision::escalate(error cause, supervision_actions& out) {
  invariant(phase_ != phase::ended, "SV-7: it ends once");
  end_cause_ = std::move(cause);
  phase_ = phase::ending;
  group_timer_ = 0;
  end_if_all_down(out);
}

} // namespace troupe
