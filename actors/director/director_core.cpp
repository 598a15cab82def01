#include "actors/director/director_core.hpp"

#include <algorithm>
#include <csignal>
#include <utility>

#include "runtime/base/invariant.hpp"
#include "runtime/base/planted_bug.hpp"
#include "runtime/base/probe.hpp"

namespace troupe {

namespace action = membership_action;
namespace record = job_record;

director_core::director_core(director_settings settings, director_ports& ports)
    : settings_{std::move(settings)}
    , ports_{ports}
    , members_{settings_.members, settings_.generation_before}
    , detector_{settings_.limits}
    , fired_{settings_.fired_before} {
  const auto total = settings_.members.slots + settings_.members.external_slots;
  for (std::uint32_t i = 0; i < total; ++i) {
    slots_.push_back(
        {.budget = restart_intensity{settings_.intensity}, .pause = backoff{settings_.restart_backoff}});
  }
}

void director_core::start() {
  last_beat_ = ports_.now();
  apply(members_.start(lived()));
}

// --- membership's actions -------------------------------------------------------------------------------

void director_core::apply(membership::outputs actions) {
  for (auto& one : actions) {
    std::visit([this](const auto& action) { act(action); }, one);
  }
}

void director_core::act(const action::start_process& action) {
  auto& slot = slots_[action.slot];
  slot.pid = 0;
  slot.who.reset();
  slot.ready = false;
  slot.finished.reset();
  if (TROUPE_PLANTED("director.restart_counter_reset")) slot.budget = restart_intensity{settings_.intensity};
  if (slot.budget.admitted() <= 1) return launch(action.slot); // the first replacement is at once
  probe<"director.replacement_waited">::hit();
  ports_.call_after(slot.pause.next(ports_.random()), [this, index = action.slot] {
    if (!stopping_ && slots_[index].pid == 0) launch(index);
  });
}

void director_core::launch(std::uint32_t index) {
  auto& slot = slots_[index];
  auto child = ports_.start_process(index, [this, index](const process_exit& exit) { on_exit(index, exit); });
  if (!child) return apply(members_.end(child.failure().at("starting worker " + std::to_string(index))));
  slot.pid = child->pid;
  slot.box = child->box;
  slot.child = true;
  slot.condemned.reset();
  slot.fault_seen = 0;
  ports_.record(record::worker_started{index, slot.pid});
}

void director_core::act(const action::kill_process& action) {
  if (slots_[action.slot].ready) ports_.record(record::survivor_killed{action.slot, action.cause});
  condemn(action.slot, failure_kind::hang, action.cause);
}

void director_core::act(const action::end_generation& action) {
  if (probe<"director.held_start_dropped">::when(held_start_.has_value())) held_start_.reset();
  detector_.generation_ended();
  ports_.record(record::generation_ended{action.generation, action.cause});
  for (const auto& who : action.members)
    ports_.send(who, wire::end_generation{action.generation, action.cause});
}

void director_core::act(const action::find_resume_point&) {
  ports_.find_resume_point();
}

void director_core::act(const action::prepare_generation& action) {
  const auto& plan = action.plan;
  ports_.generation_changed(plan.generation, fired_,
                            [this, generation = plan.generation] { journaled(generation); });
  std::vector<collective_member> ranks;
  for (const auto& member : plan.members) {
    const auto& slot = slots_[member.slot];
    ranks.push_back({member.incarnation, slot.address, member.host});
  }
  apart_.clear();
  aborted_.clear();
  auto place = ports_.prepare_collective(plan.generation, std::move(ranks));
  if (!place) return apply(members_.end(place.failure()));
  wire::prepare_generation message{.generation = plan.generation,
                                   .step = plan.step,
                                   .checkpoint = plan.checkpoint,
                                   .collective = *place,
                                   .fired_faults = fired_text()};
  for (const auto& member : plan.members) {
    message.members.push_back({member.incarnation, slots_[member.slot].address, member.slot});
  }
  for (std::uint32_t rank = 0; rank < plan.members.size(); ++rank) {
    const auto& member = plan.members[rank];
    message.rank = rank_id{rank};
    message.source = static_cast<wire::state_source>(member.source);
    message.source_rank = member.source_rank;
    detector_.watch(member.incarnation, rank_id{rank}, ports_.now());
    ports_.send(member.incarnation, message);
  }
}

// The journal is written while the members prepare; whatever comes last starts the generation (DI-5).
void director_core::act(const action::start_generation& action) {
  if (journaled_ >= action.generation || TROUPE_PLANTED("director.started_before_journaled"))
    return announce_start(action);
  probe<"director.start_held_for_journal">::hit();
  held_start_ = action;
  held_since_ = ports_.now();
}

void director_core::journaled(generation_id generation) {
  journaled_ = std::max(journaled_, generation);
  if (stopping_ || !held_start_ || held_start_->generation > journaled_) return;
  announce_start(*std::exchange(held_start_, std::nullopt));
}

void director_core::announce_start(const action::start_generation& action) {
  newest_step_ = members_.plan().step.value(); // a rollback goes back; no older news comes after `prepared`
  detector_.generation_started(ports_.now());
  started_ = action.generation;
  refusals_.clear();
  for (const auto& who : action.members)
    ports_.send(who, wire::start_generation{action.generation});
  ports_.record(record::generation_started{action.generation, members_.plan().step,
                                           static_cast<std::uint32_t>(action.members.size()),
                                           ports_.collective_kind(), ports_.collective_why()});
}

void director_core::act(const action::finish_job& action) {
  end_cause_ = action.cause;
  if (!end_cause_) check_replicas();
  record::job_finished done{end_cause_,        {},        members_.generation(),
                            members_.joined(), restarts_, step_id{newest_step()}};
  if (!end_cause_) {
    for (const auto& member : members_.plan().members) {
      if (slots_[member.slot].finished) done.workers.push_back(*slots_[member.slot].finished);
    }
  }
  if (end_cause_ && end_cause_->code == errc::budget_spent)
    ports_.record(record::budget_spent{end_cause_->text});
  ports_.record(std::move(done));
  stop_workers(end_cause_ ? end_cause_->text : "the job is done");
}

// Exactness is checked where it is cheap: all replicas end with the same bits, or the job failed (70).
void director_core::check_replicas() {
  const wire::worker_finished* first = nullptr;
  for (const auto& member : members_.plan().members) {
    const auto& finished = slots_[member.slot].finished;
    if (!finished) continue;
    if (first == nullptr) first = &*finished;
    if (finished->state_digest == first->state_digest) continue;
    end_cause_ = error{errc::internal, "replicas differ after the last step: " + first->state_digest +
                                           " and " + finished->state_digest};
  }
}

// --- what workers say -----------------------------------------------------------------------------------

expected<void> director_core::on_offer(const join_offer& offer) {
  if (stopping_) return error{errc::refused, "the job is ending"};
  if (probe<"director.offer_repeated">::when(slot_of(offer.incarnation).has_value()))
    return {}; // it asks again: the answer was lost
  std::optional<std::uint32_t> index;
  if (offer.slot >= 0) {
    const auto wanted = static_cast<std::uint32_t>(offer.slot);
    const bool ours =
        wanted < settings_.members.slots && slots_[wanted].pid == offer.pid && !slots_[wanted].who;
    if (ours) index = wanted;
  } else {
    for (std::uint32_t i = settings_.members.slots; i < slots_.size() && !index; ++i) {
      if (!slots_[i].who) index = i;
    }
  }
  if (probe<"director.offer_without_place">::when(!index))
    return error{errc::refused, "no place is free for process " + std::to_string(offer.pid) +
                                    "; the job admits as many as its --external says"};
  auto& slot = slots_[*index];
  auto connected = ports_.connect(offer.incarnation, offer.address);
  if (!connected) return connected.failure();
  slot.pid = offer.pid;
  slot.child = offer.slot >= 0;
  slot.who = offer.incarnation;
  slot.address = offer.address;
  slot.machine = offer.machine;
  slot.condemned.reset();
  expect_ready(*index, settings_.limits.join_deadline, failure_kind::hang,
               "was not ready within its deadline");
  return {};
}

std::optional<std::uint32_t> director_core::slot_of(incarnation_id who) const {
  for (std::uint32_t i = 0; i < slots_.size(); ++i) {
    if (slots_[i].who == who) return i;
  }
  return std::nullopt;
}

void director_core::on_message(incarnation_id from, const wire::control& message) {
  const auto slot = slot_of(from);
  if (!slot) return; // DI-2
  std::visit([&](const auto& m) { hear(*slot, m); }, message);
}

void director_core::hear(std::uint32_t index, const wire::worker_ready& m) {
  auto& slot = slots_[index];
  if (slot.ready || stopping_) return; // too late: it is told to stop
  slot.ready = true;
  slot.device = m.device;
  detector_.watch(*slot.who, rank_id{index}, ports_.now());
  ports_.record(record::worker_ready{index, slot.pid, m.device});
  if (auto lanes = ports_.lanes(*slot.who); !lanes.empty())
    ports_.record(record::path_opened{index, slot.pid, std::move(lanes)});
  apply(members_.on_ready(index, *slot.who, lived(), slot.machine));
}

void director_core::hear(std::uint32_t index, const wire::heartbeat& m) {
  const progress reported{m.step_applied,
                          step_id{m.step_started},
                          static_cast<activity>(m.doing),
                          m.doing_for,
                          m.step_busy,
                          m.arrivals,
                          static_cast<collective_call>(m.call),
                          m.call_number};
  (void)detector_.beat(*slots_[index].who, reported, ports_.now());
  newest_step_ = std::max(newest_step_, m.step_applied.value());
}

void director_core::hear(std::uint32_t index, const wire::generation_prepared& m) {
  if (m.generation == members_.generation() && m.source != wire::state_source::keep) {
    ports_.record(record::state_sent{m.generation, index, m.step, m.source});
  }
  apply(members_.on_prepared(*slots_[index].who, m.generation, m.step, lived()));
}

void director_core::hear(std::uint32_t index, const wire::prepare_failed& m) {
  apply(members_.on_prepare_failed(*slots_[index].who, m.generation, m.cause, lived()));
}

void director_core::hear(std::uint32_t index, const wire::generation_stopped& m) {
  if (m.generation == members_.generation()) {
    ports_.record(record::collective_aborted{m.generation, index, m.applied});
  }
  apply(members_.on_stopped(*slots_[index].who, m.generation, m.applied, m.holds_state, lived()));
}

void director_core::hear(std::uint32_t index, const wire::actor_failed& m) {
  if (m.code == errc::aborted) return hear_aborted(index, m);
  auto& slot = slots_[index];
  failure what{.kind = failure_kind_of(m.code),
               .cause = m.text,
               .pid = slot.pid,
               .who = *slot.who,
               .step = step_id{m.step},
               .detected_at = ports_.now()};
  if (felt(index, note_fault(index))) what.fault_at = time_from_ns(m.fault_ns);
  if (!admit(index, what, m.actor, m.healed_locally)) return;
  if (!probe<"director.actor_healed_locally">::when(m.healed_locally))
    apply(members_.on_worker_failed(*slot.who, what.cause, lived()));
}

// All members see the same sum: the step is judged once all have refused it. Who cannot say so any more is
// found out otherwise, and ends the generation itself.
void director_core::hear(std::uint32_t index, const wire::step_refused& m) {
  const bool current =
      m.generation == members_.generation() && members_.current_phase() == membership::phase::running;
  if (!current) return;
  refusals_.push_back({index, m.ours});
  if (refusals_.size() == members_.plan().members.size()) refuse_step(m.step);
}

void director_core::hear(std::uint32_t index, const wire::first_step& m) {
  if (m.generation != members_.generation()) return;
  newest_step_ = std::max(newest_step_, m.step.value());
  if (std::exchange(progressing_, m.generation) != m.generation)
    ports_.record(record::first_step_applied{m.generation, m.step});
  const auto resumed = members_.plan().step.value();
  std::vector<open_failure> waiting;
  for (const auto& open : open_failures_) {
    // The ended generation's own first step may arrive after its end.
    const bool heals = open.local ? open.slot == index : m.generation > open.generation;
    if (!heals) {
      probe<"director.failure_stays_open">::hit();
      waiting.push_back(open);
      continue;
    }
    probe<"director.failure_recovered">::hit();
    const auto lost = open.local || open.step_started <= resumed ? 0 : open.step_started - resumed;
    ports_.record(record::failure_recovered{open.number, ports_.now(), lost,
                                            open.local ? "memory" : source_of(open.slot)});
  }
  open_failures_ = std::move(waiting);
}

void director_core::hear(std::uint32_t, const wire::step_report& m) {
  if (m.generation != members_.generation()) return;
  newest_step_ = std::max(newest_step_, m.step.value());
  if (m.steps_done > 0) {
    guard_.committed(m.step);
    for (auto& slot : slots_)
      slot.pause.reset();
  }
  ports_.record(
      record::progressed{m.generation, m, static_cast<std::uint32_t>(members_.plan().members.size())});
}

void director_core::hear(std::uint32_t index, const wire::checkpoint_report& m) {
  ports_.record(record::checkpoint{index, m});
}

void director_core::hear(std::uint32_t index, const wire::worker_finished& m) {
  if (m.generation != members_.generation()) return;
  slots_[index].finished = m;
  newest_step_ = std::max(newest_step_, m.step.value());
  apply(members_.on_finished(*slots_[index].who, m.generation));
}

void director_core::on_resume_point(const std::vector<record::checkpoint_rejected>& rejected,
                                    expected<resume_point> found) {
  for (const auto& one : rejected)
    ports_.record(one);
  if (found) {
    const bool fresh = found->checkpoint.empty();
    ports_.record(record::resume_found{fresh ? std::nullopt : std::optional{found->step}, found->checkpoint});
  }
  apply(members_.on_resume_point(std::move(found), lived()));
}

std::string director_core::source_of(std::uint32_t slot) const {
  for (const auto& member : members_.plan().members) {
    if (member.slot != slot) continue;
    switch (member.source) {
    case member_source::keep:
      return "memory";
    case member_source::peer:
      return "peer";
    case member_source::checkpoint:
      return "disk";
    case member_source::fresh:
      return "none";
    }
  }
  return "none";
}

rank_id director_core::rank_of(std::uint32_t slot) const {
  for (std::uint32_t rank = 0; rank < members_.plan().members.size(); ++rank) {
    if (members_.plan().members[rank].slot == slot) return rank_id{rank};
  }
  return rank_id{slot};
}

// --- time and the end -----------------------------------------------------------------------------------

void director_core::on_tick() {
  const auto now = ports_.now();
  if (stopping_) {
    if (now < stop_deadline_) return;
    probe<"director.stop_deadline_passed">::hit();
    for (const auto& slot : slots_) {
      if (slot.pid != 0 && slot.child) ports_.signal(slot.pid, SIGKILL);
    }
    for (auto& slot : slots_) {
      if (!slot.child) slot.pid = 0; // not ours to reap
    }
    return check_over();
  }
  for (std::uint32_t i = 0; i < slots_.size(); ++i)
    look_for_strikes(i);
  // A storage that hangs costs the successor its numbering, not this job its progress.
  if (probe<"director.journal_hung">::when(held_start_ &&
                                           now - held_since_ > settings_.limits.report_deadline))
    journaled(held_start_->generation);
  for (const auto& one : detector_.tick(now))
    judge(one);
  apply(members_.on_tick(lived()));
  if (now - last_beat_ < settings_.limits.heartbeat_interval) return;
  last_beat_ = now;
  for (const auto& slot : slots_) {
    if (slot.who) ports_.send(*slot.who, wire::director_heartbeat{members_.generation(), fired_text()});
  }
}

// Deadlines of members run while this process does: it may have stood still, and they with it.
time_point director_core::lived() const {
  return ports_.now() - detector_.missed();
}

std::string director_core::fired_text() const {
  return TROUPE_PLANTED("director.fired_fault_forgotten") ? std::string{} : fired_.encode();
}

std::uint64_t director_core::newest_step() const {
  auto newest = newest_step_;
  for (const auto& slot : slots_) {
    if (slot.box != nullptr) newest = std::max(newest, slot.box->step_applied.load());
  }
  return newest;
}

void director_core::stop(const error& cause) {
  if (!stopping_) apply(members_.end(cause));
}

void director_core::stop_workers(const std::string& cause) {
  stopping_ = true;
  stop_deadline_ = ports_.now() + settings_.limits.shutdown_grace;
  for (const auto& slot : slots_) {
    if (slot.who) {
      ports_.send(*slot.who, wire::stop_worker{cause});
    } else if (slot.pid != 0 && slot.child) {
      probe<"director.unjoined_killed">::hit();
      ports_.signal(slot.pid, SIGKILL); // has not joined yet: nothing to lose
    }
  }
  check_over();
}

void director_core::check_over() {
  const auto gone = [](const slot_process& slot) { return slot.pid == 0; };
  if (over_ || !std::all_of(slots_.begin(), slots_.end(), gone)) return; // DI-4
  over_ = true;
  ports_.over(end_cause_);
}

} // namespace troupe
