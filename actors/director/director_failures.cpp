// Failures, as the director sees them: from the first sign to the loss of a process and its budget.
#include <algorithm>
#include <csignal>

#include "actors/director/director_core.hpp"
#include "runtime/base/probe.hpp"

namespace troupe {

namespace record = job_record;

namespace {

std::string cause_of_refusal(std::ptrdiff_t ours, std::ptrdiff_t world, rank_id first) {
  if (ours == 0) return "the sum of finite gradients is not finite";
  if (ours == 1) return "the gradient of rank " + to_string(first) + " is not finite";
  if (ours == world) return "the gradient of every rank is not finite";
  return "the gradients of " + std::to_string(ours) + " ranks are not finite";
}

} // namespace

void director_core::on_path_lost(incarnation_id who, const error& cause) {
  const auto index = slot_of(who);
  if (!index) return;
  auto& slot = slots_[*index];
  detector_.path_error(who, ports_.now());
  if (stopping_ && !slot.child) {
    slot = {.budget = slot.budget, .pause = slot.pause};
    check_over();
  } else if (!slot.child && cause.code == errc::actor_stopped) { // left in order
    probe<"director.outsider_left">::hit();
    lose(*index, {.kind = failure_kind::exit,
                  .cause = cause.text,
                  .pid = slot.pid,
                  .who = who,
                  .step = step_id{newest_step_},
                  .detected_at = ports_.now()});
  } else if (!slot.ready && !stopping_) { // a path opens once; a death is told by its exit meanwhile
    probe<"director.path_lost_before_ready">::hit();
    expect_ready(*index, settings_.limits.path_grace, failure_kind::path_lost, cause.text);
  }
}

void director_core::on_path_interrupted(incarnation_id who, const error& cause) {
  const auto index = slot_of(who);
  if (index && slots_[*index].ready && !stopping_)
    ports_.record(record::path_interrupted{*index, cause.text});
}

// Until it is ready a process has no lease: it does long work, such as touching its memory.
void director_core::expect_ready(std::uint32_t index, duration within, failure_kind otherwise,
                                 const std::string& text) {
  auto why = std::make_shared<const std::string>(text);
  ports_.call_after(within, [this, index, who = slots_[index].who, otherwise, why] {
    if (probe<"director.not_ready_in_time">::when(slots_[index].who == who && !slots_[index].ready &&
                                                  !stopping_))
      condemn(index, otherwise, *why);
  });
}

void director_core::on_exit(std::uint32_t index, const process_exit& exit) {
  auto& slot = slots_[index];
  if (slot.pid != exit.pid) return;
  if (stopping_) {
    if (slot.who) ports_.close(*slot.who, {errc::process_died, exit.text()});
    slot.pid = 0;
    slot.who.reset();
    return check_over();
  }
  exit_evidence evidence{.condemned = slot.condemned, .condemned_text = slot.condemned_text};
  if (probe<"director.last_words_read">::when(slot.box->cause[0] != '\0')) {
    const auto& cause = slot.box->cause;
    evidence.cause.assign(cause.begin(), std::find(cause.begin(), cause.end(), '\0'));
  }
  auto what = failure_of_exit(exit, evidence);
  what.pid = exit.pid;
  what.step = step_id{slot.box->step_started.load()};
  what.detected_at = slot.condemned ? slot.condemned_at : ports_.now();
  if (slot.who) what.who = *slot.who;
  lose(index, std::move(what));
}

void director_core::lose(std::uint32_t index, failure what) {
  probe<"director.process_lost">::hit();
  auto& slot = slots_[index];
  const auto struck = note_fault(index);
  what.fault_at = felt(index, struck);
  if (!what.fault_at) what.fault_at = slot.struck_at;
  slot.struck_at.reset();
  keep_flight(index, flight_writer::director, what.cause);
  if (slot.who) {
    detector_.forget(*slot.who);
    ports_.close(*slot.who, {errc::process_died, what.cause});
  }
  slot.pid = 0;
  slot.who.reset();
  slot.ready = false;
  if (struck && settings_.faults[*struck].target.which == fault_target::choice::all &&
      ends_process(settings_.faults[*struck].kind))
    strike_all_but(index, *struck);
  if (!admit(index, what, {}, false)) return;
  ++restarts_;
  apply(members_.on_lost(index, what.cause, lived()));
}

// One rank's gradient may be a device's glitch. Everybody's, or nobody's (the sum overflows), is the model's
// or the data's: computing it again gives the same, and the job ends for that.
void director_core::refuse_step(step_id step) {
  std::ranges::sort(refusals_, {}, &refusal::slot);
  const auto first = std::ranges::find_if(refusals_, &refusal::ours);
  const auto index = first == refusals_.end() ? refusals_.front().slot : first->slot;
  const auto ours = std::ranges::count_if(refusals_, &refusal::ours);
  const bool one = ours == 1;
  const bool shared = !one && (ours == 0 || ours == std::ssize(refusals_));
  failure what{.kind = failure_kind::nan,
               .cause = cause_of_refusal(ours, std::ssize(refusals_), rank_of(index)),
               .pid = slots_[index].pid,
               .who = *slots_[index].who,
               .step = step,
               .detected_at = ports_.now()};
  refusals_.clear();
  what.fault_at = felt(index, note_fault(index));
  ports_.record(record::step_refused{one ? std::optional{rank_of(index)} : std::nullopt, step, what.cause});
  if (!admit(index, what, {}, false, shared ? errc::bad_data : errc::budget_spent)) return;
  apply(members_.on_step_refused(what.cause, lived()));
}

bool director_core::admit(std::uint32_t index, failure& what, const std::string& actor, bool local,
                          errc repeated) {
  what.rank = rank_of(index);
  const auto number = failures_++;
  open_failures_.push_back({number, index, what.step.value(), local, members_.generation()});
  ports_.record(record::failure_detected{number, index, what, actor});
  if (!actor.empty()) ++restarts_;
  if (probe<"director.same_failure_again">::when(guard_.record(what))) {
    apply(members_.end({repeated, "worker " + std::to_string(index) + " failed " +
                                      std::to_string(same_failure_guard::repeats_max) + " times at step " +
                                      to_string(what.step) + " without progress: " + what.cause}));
    return false;
  }
  if (probe<"director.budget_spent">::when(!slots_[index].budget.admit(ports_.now()))) {
    const auto& policy = settings_.intensity;
    apply(members_.end({errc::budget_spent, "worker " + std::to_string(index) + " failed more than " +
                                                std::to_string(policy.restarts_max) + " times within " +
                                                std::to_string(static_cast<long>(to_s(policy.period))) +
                                                " s; the last cause: " + what.cause}));
    return false;
  }
  return true;
}

void director_core::condemn(std::uint32_t index, failure_kind kind, std::string text) {
  auto& slot = slots_[index];
  if (slot.pid == 0 || slot.condemned) return;
  slot.condemned = kind;
  slot.condemned_text = std::move(text);
  slot.condemned_at = ports_.now();
  if (slot.child) {
    probe<"director.condemned">::hit();
    ports_.signal(slot.pid, SIGKILL); // DI-3; its exit is the loss
  } else {
    probe<"director.outsider_condemned">::hit();
    lose(index, {.kind = kind,
                 .cause = slot.condemned_text,
                 .pid = slot.pid,
                 .who = slot.who.value_or(incarnation_id{}),
                 .step = step_id{newest_step_},
                 .detected_at = slot.condemned_at});
  }
}

// Only of a member of the generation that runs or ran last, and only where its black box can be read.
void director_core::keep_flight(std::uint32_t index, flight_writer by, const std::string& cause) {
  const auto& slot = slots_[index];
  const auto& members = members_.plan().members;
  const auto place = std::ranges::find(members, index, &generation_member::slot);
  if (started_ != members_.plan().generation || place == members.end()) return;
  if (slot.box == nullptr || !slot.child || slot.who != place->incarnation) return;
  ports_.keep_flight({.generation = started_,
                      .rank = rank_id{static_cast<std::uint32_t>(place - members.begin())},
                      .world = static_cast<std::uint32_t>(members.size()),
                      .by = by,
                      .cause = cause,
                      .step_started = step_id{slot.box->step_started.load()},
                      .step_applied = step_id{slot.box->step_applied.load()}},
                     slot.box);
}

// Two that live and cannot reach each other never will: a session does not come back, and a fresh process
// opens its own.
void director_core::hear(std::uint32_t index, const wire::peer_unreachable& m) {
  const auto other = slot_of(m.who);
  if (stopping_ || m.generation != members_.generation() || !other || *other == index) return;
  if (apart_.empty()) judge_unreachable_later(m.generation);
  apart_.add(index, *other);
}

void director_core::judge_unreachable_later(generation_id generation) {
  ports_.call_after(settings_.limits.path_grace, [this, generation] { judge_unreachable(generation); });
}

bool director_core::beats(std::uint32_t slot) const {
  return slots_[slot].who && detector_.beats(*slots_[slot].who, ports_.now());
}

// Who may be dead is told by its lease. Of those that live, one is replaced (AB-1, AB-2).
void director_core::judge_unreachable(generation_id generation) {
  using phase = membership::phase;
  const auto now = members_.current_phase();
  if (stopping_ || generation != members_.generation() || (now != phase::running && now != phase::preparing))
    return;
  const bool doubtful =
      !std::ranges::all_of(apart_.slots(), [this](std::uint32_t index) { return beats(index); });
  if (probe<"director.apart_or_dead">::when(doubtful)) return judge_unreachable_later(generation);
  const auto blamed = apart_.blamed();
  probe<"director.members_apart">::hit();
  condemn(blamed, failure_kind::path_lost,
          "rank " + to_string(rank_of(blamed)) + ": " + std::to_string(apart_.missed(blamed)) +
              " of the other ranks cannot be reached from it");
}

// A sum that ended without the director's word: as a rule somebody has died, and that is told otherwise.
void director_core::hear_aborted(std::uint32_t index, const wire::actor_failed& m) {
  if (stopping_ || m.generation != members_.generation()) return;
  if (aborted_.empty()) judge_aborted_later(m.generation);
  aborted_.emplace(index, m);
}

void director_core::judge_aborted_later(generation_id generation) {
  ports_.call_after(settings_.limits.path_grace, [this, generation] { judge_aborted(generation); });
}

// Everybody lives and can be reached: it was the collective itself. Nobody's state is lost.
void director_core::judge_aborted(generation_id generation) {
  if (stopping_ || generation != members_.generation() ||
      members_.current_phase() != membership::phase::running)
    return;
  const auto lives = [this](const generation_member& member) { return beats(member.slot); };
  const bool doubtful = !apart_.empty() || !std::ranges::all_of(members_.plan().members, lives);
  if (doubtful) return judge_aborted_later(generation);
  const auto& [index, told] = *aborted_.begin();
  failure what{.kind = failure_kind::device,
               .cause = "the sum failed: " + told.text,
               .pid = slots_[index].pid,
               .who = *slots_[index].who,
               .step = step_id{told.step},
               .detected_at = ports_.now()};
  probe<"director.sum_failed">::hit();
  if (admit(index, what, told.actor, false)) apply(members_.on_step_refused(what.cause, lived()));
}

void director_core::keep_flights() {
  for (std::uint32_t index = 0; index < slots_.size(); ++index)
    keep_flight(index, flight_writer::asked, "asked for");
}

void director_core::judge(const verdict& what) {
  const auto index = slot_of(what.who);
  if (!index) return;
  switch (what.what) {
  case verdict::kind::lease_expired:
    return condemn(*index, what.path_lost ? failure_kind::path_lost : failure_kind::stop, what.text);
  case verdict::kind::hung:
    return condemn(*index, failure_kind::hang, what.text);
  case verdict::kind::collective_hung:
    return condemn(*index, failure_kind::collective_hang, what.text);
  case verdict::kind::straggler:
    return ports_.record(record::straggler{*index, what.step, what.text});
  }
}

} // namespace troupe
