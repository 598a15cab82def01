#include "runtime/policy/membership.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

#include "runtime/base/invariant.hpp"
#include "runtime/base/planted_bug.hpp"
#include "runtime/base/probe.hpp"
#include "runtime/policy/broadcast_plan.hpp"
#include "runtime/policy/rank_order.hpp"

namespace troupe {

namespace action = membership_action;

membership::membership(membership_settings settings, generation_id before)
    : settings_{settings}
    , generation_{before} {
  slots_.resize(std::size_t{settings.slots} + settings.external_slots);
  for (std::size_t i = settings.slots; i < slots_.size(); ++i)
    slots_[i].external = true;
}

// --- events ---------------------------------------------------------------------------------------------

membership::outputs membership::start(time_point now) {
  outputs out;
  for (std::uint32_t i = 0; i < slots_.size(); ++i) {
    slots_[i].since = now;
    if (!slots_[i].external) out.emplace_back(action::start_process{i});
  }
  return out;
}

membership::outputs membership::on_ready(std::uint32_t index, incarnation_id who, time_point now,
                                         std::string machine) {
  outputs out;
  if (phase_ == phase::done || index >= slots_.size() || slots_[index].joined) return out;
  slot& member = slots_[index];
  member = {.external = member.external,
            .joined = true,
            .incarnation = who,
            .machine = std::move(machine),
            .since = now,
            .idle = true};
  if (probe<"membership.joined_in_a_generation">::when(phase_ != phase::assembling))
    end_generation("a worker joined", now, out);
  advance(now, out);
  return out;
}

membership::outputs membership::on_lost(std::uint32_t index, const std::string& cause, time_point now) {
  outputs out;
  if (phase_ == phase::done || index >= slots_.size()) return out;
  probe<"membership.lost_while_assembling">::when(phase_ == phase::assembling);
  probe<"membership.lost_while_choosing">::when(phase_ == phase::choosing);
  probe<"membership.lost_while_preparing">::when(phase_ == phase::preparing);
  probe<"membership.lost_while_running">::when(phase_ == phase::running);
  slots_[index] = {.external = slots_[index].external, .since = now};
  if (!slots_[index].external) out.emplace_back(action::start_process{index});
  end_generation(cause, now, out);
  advance(now, out);
  return out;
}

membership::outputs membership::on_worker_failed(incarnation_id who, const std::string& cause,
                                                 time_point now) {
  outputs out;
  slot* member = find(who);
  if (phase_ == phase::done || member == nullptr) return out;
  probe<"membership.worker_failed">::hit();
  member->holds_state = false;
  end_generation(cause, now, out);
  return out;
}

membership::outputs membership::on_step_refused(const std::string& cause, time_point now) {
  outputs out;
  if (phase_ == phase::running) end_generation(cause, now, out);
  return out;
}

membership::outputs membership::on_stopped(incarnation_id who, generation_id ended, step_id applied,
                                           bool holds_state, time_point now) {
  outputs out;
  slot* member = find(who);
  if (probe<"membership.stop_stale">::when(phase_ != phase::assembling || member == nullptr ||
                                           ended != generation_))
    return out; // MS-5
  member->idle = true;
  member->holds_state = holds_state;
  member->applied = applied;
  advance(now, out);
  return out;
}

membership::outputs membership::on_resume_point(expected<resume_point> found, time_point now) {
  outputs out;
  if (probe<"membership.resume_point_stale">::when(phase_ != phase::choosing)) return out;
  if (!found) return end(found.failure());
  prepare(*found, now, out);
  return out;
}

membership::outputs membership::on_prepared(incarnation_id who, generation_id prepared, step_id step,
                                            time_point now) {
  outputs out;
  slot* member = find(who);
  if (probe<"membership.prepared_stale">::when(phase_ != phase::preparing || member == nullptr ||
                                               prepared != generation_))
    return out; // MS-5
  if (step != plan_.step) {
    return end({errc::internal, "slot " + std::to_string(*slot_of(who)) + " prepared step " +
                                    to_string(step) + " where step " + to_string(plan_.step) +
                                    " was planned"});
  }
  member->prepared = true;
  member->since = now;
  const auto ready = [](const slot& s) { return !s.joined || s.prepared; };
  if (!std::all_of(slots_.begin(), slots_.end(), ready)) return out; // MS-2
  phase_ = phase::running;
  prepare_failures_ = 0;
  out.emplace_back(action::start_generation{generation_, members_joined()});
  return out;
}

membership::outputs membership::on_prepare_failed(incarnation_id who, generation_id failed,
                                                  const error& cause, time_point now) {
  outputs out;
  if (probe<"membership.prepare_failure_stale">::when(phase_ != phase::preparing || find(who) == nullptr ||
                                                      failed != generation_))
    return out; // MS-5
  // A version may be damaged, or retired while it was chosen: another one is looked for.
  const bool only_this_version = cause.code == errc::corrupt || cause.code == errc::not_found;
  if (reaction_of(cause.code) == reaction::stop && !only_this_version) return end(cause);
  if (++prepare_failures_ >= settings_.prepare_attempts_max) return end(cause);
  probe<"membership.prepare_tried_again">::hit();
  // A path that has failed stays closed: a fresh process opens its own.
  const bool unreachable = cause.code == errc::path_lost && prepare_failures_ > 1;
  if (probe<"membership.unreachable_replaced">::when(unreachable))
    out.emplace_back(action::kill_process{*slot_of(who), "cannot reach the peer that holds the state"});
  end_generation(cause.text, now, out);
  return out;
}

membership::outputs membership::on_finished(incarnation_id who, generation_id finished) {
  outputs out;
  slot* member = find(who);
  if (probe<"membership.finish_stale">::when(phase_ != phase::running || member == nullptr ||
                                             finished != generation_))
    return out; // MS-5
  member->finished = true;
  const auto over = [](const slot& s) { return !s.joined || s.finished; };
  if (!std::all_of(slots_.begin(), slots_.end(), over)) return out;
  phase_ = phase::done;
  out.emplace_back(action::finish_job{});
  return out;
}

membership::outputs membership::on_tick(time_point now) {
  outputs out;
  if (phase_ == phase::done) return out;
  for (std::uint32_t i = 0; i < slots_.size(); ++i) {
    const slot& s = slots_[i];
    const auto waited = now - s.since;
    if (!s.joined && !s.external && waited > settings_.join_deadline) {
      probe<"membership.join_deadline_missed">::hit();
      out.emplace_back(action::kill_process{i, "did not join within its deadline"});
    } else if (s.joined && phase_ == phase::assembling && !s.idle && waited > settings_.answer_deadline) {
      probe<"membership.leave_deadline_missed">::hit();
      out.emplace_back(action::kill_process{i, "did not leave the ended generation within its deadline"});
    } else if (s.joined && phase_ == phase::preparing && !s.prepared && waited > settings_.answer_deadline) {
      probe<"membership.prepare_deadline_missed">::hit();
      out.emplace_back(action::kill_process{i, "did not prepare the generation within its deadline"});
    } else {
      continue;
    }
    slots_[i].since = now; // once a deadline
  }
  if (phase_ == phase::assembling) advance(now, out);
  return out;
}

membership::outputs membership::end(error cause) {
  outputs out;
  if (phase_ == phase::done) return out;
  phase_ = phase::done;
  out.emplace_back(action::finish_job{std::move(cause)});
  return out;
}

// --- transitions ----------------------------------------------------------------------------------------

void membership::end_generation(const std::string& cause, time_point now, outputs& out) {
  phase_ = phase::assembling;
  if (probe<"membership.ended_already">::when(ended_sent_)) return;
  ended_sent_ = true;
  for (slot& s : slots_) {
    const bool was_member = std::any_of(plan_.members.begin(), plan_.members.end(), [&](const auto& m) {
      return s.joined && m.incarnation == s.incarnation;
    });
    if (was_member) s.idle = false;
    s.since = now;
  }
  std::vector<incarnation_id> told;
  for (const slot& s : slots_) {
    if (s.joined && !s.idle) told.push_back(s.incarnation);
  }
  if (TROUPE_PLANTED("membership.survivor_not_told") && !told.empty()) told.pop_back();
  out.emplace_back(action::end_generation{generation_, std::move(told), cause});
}

bool membership::assembled(time_point now) {
  for (const slot& s : slots_) {
    const bool given_up = s.external && !s.joined && now - s.since > settings_.replacement_wait;
    probe<"membership.outsider_given_up">::when(given_up);
    if (!given_up && (!s.joined || !s.idle)) return false; // MS-4
  }
  return true;
}

void membership::advance(time_point now, outputs& out) {
  if (phase_ != phase::assembling || !assembled(now)) return;
  if (joined() < settings_.workers_min) {
    auto over =
        end({errc::too_few_workers, std::to_string(joined()) + " workers where at least " +
                                        std::to_string(settings_.workers_min) + " are demanded, after " +
                                        std::to_string(to_s(settings_.replacement_wait)) + " s of waiting"});
    out.insert(out.end(), std::make_move_iterator(over.begin()), std::make_move_iterator(over.end()));
    return;
  }
  const auto holds = [](const slot& s) { return s.joined && s.holds_state; };
  const slot* newest = nullptr;
  for (const slot& s : slots_) {
    if (holds(s) && (newest == nullptr || s.applied > newest->applied)) newest = &s;
  }
  if (newest != nullptr) {
    probe<"membership.resumes_from_memory">::hit();
    prepare({newest->applied, {}}, now, out); // MS-3
  } else {
    phase_ = phase::choosing;
    out.emplace_back(action::find_resume_point{});
  }
}

void membership::prepare(const resume_point& from, time_point now, outputs& out) {
  phase_ = phase::preparing;
  generation_ = generation_.next(); // MS-1
  plan_ = {generation_, from.step, from.checkpoint, {}};
  ended_sent_ = false;
  add_members();
  std::vector<rank_id> sources;
  std::vector<rank_id> joiners;
  for (std::uint32_t rank = 0; rank < plan_.members.size(); ++rank) {
    auto& member = plan_.members[rank];
    slot& s = slots_[member.slot];
    invariant(s.idle, "MS-4: every member is idle before a generation is prepared");
    const bool keeps = s.holds_state && s.applied == from.step;
    (keeps ? sources : joiners).push_back(rank_id{rank});
    if (keeps) member.source = member_source::keep;
    s.prepared = s.finished = false;
    s.since = now;
  }
  const bool from_checkpoint = sources.empty() && !from.checkpoint.empty();
  for (const auto joiner : joiners)
    plan_.members[joiner.value()].source = from_checkpoint ? member_source::checkpoint : member_source::fresh;
  probe<"membership.state_from_checkpoint">::when(from_checkpoint);
  for (const auto& hop : broadcast_plan(sources, joiners)) {
    auto& joiner = plan_.members[hop.to.value()];
    joiner.source = member_source::peer;
    joiner.source_rank = hop.from;
    probe<"membership.state_from_peer">::hit();
    probe<"membership.state_passed_on">::when(plan_.members[hop.from.value()].source == member_source::peer);
  }
  out.emplace_back(action::prepare_generation{plan_});
}

void membership::add_members() {
  std::vector<std::uint32_t> joined;
  std::vector<std::string_view> machines;
  for (std::uint32_t i = 0; i < slots_.size(); ++i) {
    if (!slots_[i].joined) continue;
    joined.push_back(i);
    machines.push_back(slots_[i].machine);
  }
  for (const auto& rank : order_ranks(machines, settings_.machine)) {
    const auto index = joined[rank.member];
    plan_.members.push_back({.slot = index,
                             .incarnation = slots_[index].incarnation,
                             .source = member_source::fresh,
                             .host = rank.host});
  }
}

// --- views ----------------------------------------------------------------------------------------------

membership::slot* membership::find(incarnation_id who) {
  for (slot& s : slots_) {
    if (s.joined && s.incarnation == who) return &s;
  }
  return nullptr;
}

std::optional<std::uint32_t> membership::slot_of(incarnation_id who) const {
  for (std::uint32_t i = 0; i < slots_.size(); ++i) {
    if (slots_[i].joined && slots_[i].incarnation == who) return i;
  }
  return std::nullopt;
}

std::optional<rank_id> membership::rank_of(incarnation_id who) const {
  for (std::uint32_t i = 0; i < plan_.members.size(); ++i) {
    if (plan_.members[i].incarnation == who) return rank_id{i};
  }
  return std::nullopt;
}

std::uint32_t membership::joined() const {
  return static_cast<std::uint32_t>(
      std::count_if(slots_.begin(), slots_.end(), [](const slot& s) { return s.joined; }));
}

std::optional<std::uint32_t> membership::free_external_slot() const {
  for (std::uint32_t i = 0; i < slots_.size(); ++i) {
    if (slots_[i].external && !slots_[i].joined) return i;
  }
  return std::nullopt;
}

std::vector<incarnation_id> membership::members_joined() const {
  std::vector<incarnation_id> members;
  for (const slot& s : slots_) {
    if (s.joined) members.push_back(s.incarnation);
  }
  return members;
}

} // namespace troupe
