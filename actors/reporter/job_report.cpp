#include "actors/reporter/job_report.hpp"

#include <algorithm>

namespace troupe {

namespace record = job_record;

namespace {

void merge(latency_histogram& into, const wire::histogram& from) {
  std::vector<latency_histogram::bucket> buckets;
  for (std::size_t i = 0; i < from.indices.size(); ++i)
    buckets.push_back({from.indices[i], from.counts[i]});
  (void)into.add(buckets, from.max); // a histogram that cannot be one is left out
}

// A negative number was not counted.
void keep_most(std::optional<double>& most, double counted) {
  if (counted >= 0 && counted >= most.value_or(0)) most = counted;
}

std::string_view name_of(wire::state_source source) {
  switch (source) {
  case wire::state_source::keep:
    return "memory";
  case wire::state_source::peer:
    return "peer";
  case wire::state_source::checkpoint:
    return "disk";
  case wire::state_source::fresh:
    return "none";
  }
  return "none";
}

} // namespace

job_report::job_report(job_report_settings settings, const clock_seam& clock, text_sink& events,
                       text_sink& people, progress_line::style style)
    : settings_{std::move(settings)}
    , clock_{clock}
    , events_{clock, events}
    , people_{clock, people, style}
    , started_{clock.now()} {
  summary_.program = settings_.program;
  summary_.version = settings_.version;
  summary_.seed = settings_.seed;
  summary_.shards = settings_.shards;
  summary_.workers_start = settings_.workers;
  summary_.exit_reason = "interrupted";
}

void job_report::begin(const std::string& endpoint) {
  events_.record({.kind = event_kind::job_started}, {{"program", settings_.program},
                                                     {"workers", std::uint64_t{settings_.workers}},
                                                     {"seed", settings_.seed},
                                                     {"shards", std::uint64_t{settings_.shards}},
                                                     {"endpoint", endpoint}});
}

void job_report::on_record(const job_record_variant& what) {
  std::visit([this](const auto& r) { hear(r); }, what);
}

void job_report::hear(const record::worker_started& r) {
  events_.record(
      {.kind = event_kind::worker_started, .generation = generation_, .rank = rank_id{r.slot}, .pid = r.pid});
}

void job_report::hear(const record::worker_ready& r) {
  if (r.slot == 0 || summary_.device.empty()) summary_.device = r.device; // the first worker's
  events_.record(
      {.kind = event_kind::worker_ready, .generation = generation_, .rank = rank_id{r.slot}, .pid = r.pid},
      {{"device", r.device}});
}

void job_report::hear(const record::path_opened& r) {
  events_.record(
      {.kind = event_kind::path_opened, .generation = generation_, .rank = rank_id{r.slot}, .pid = r.pid},
      {{"lanes", r.lanes}});
}

void job_report::hear(const record::resume_found& r) {
  const auto step = r.step.value_or(step_id{0});
  if (!resumed_from_) resumed_from_ = step.value();
  newest_step_ = step.value();
  if (!r.step) return;
  events_.record({.kind = event_kind::resumed, .generation = generation_, .step = step},
                 {{"path", r.checkpoint}});
  people_.milestone("resuming from step " + to_string(step) + " (" + r.checkpoint + ")");
}

void job_report::hear(const record::checkpoint_rejected& r) {
  events_.record(
      {.kind = event_kind::checkpoint_rejected, .generation = generation_, .step = r.step, .cause = r.cause});
  people_.milestone("checkpoint of step " + to_string(r.step) + " rejected: " + r.cause);
}

void job_report::hear(const record::generation_started& r) {
  generation_ = r.generation;
  summary_.generations = r.generation.value();
  summary_.workers_end = r.world;
  step_at_start_ = r.step.value();
  in_steps_before_ += in_steps_now_;
  in_steps_now_ = duration{0};
  const event what{.kind = event_kind::generation_started, .generation = r.generation, .step = r.step};
  const event_field world{"world", std::uint64_t{r.world}};
  if (r.collective.empty()) return events_.record(what, {world});
  const event_field collective{"collective", r.collective};
  if (r.collective_why.empty()) return events_.record(what, {world, collective});
  events_.record(what, {world, collective, {"collective_why", r.collective_why}});
}

void job_report::hear(const record::first_step_applied& r) {
  events_.record({.kind = event_kind::first_step_applied, .generation = r.generation, .step = r.step});
}

void job_report::hear(const record::generation_ended& r) {
  events_.record({.kind = event_kind::generation_ended, .generation = r.generation, .cause = r.cause});
}

void job_report::hear(const record::collective_aborted& r) {
  events_.record({.kind = event_kind::collective_aborted,
                  .generation = r.generation,
                  .step = r.applied,
                  .rank = rank_id{r.slot}});
}

void job_report::hear(const record::state_sent& r) {
  events_.record(
      {.kind = event_kind::state_sent, .generation = r.generation, .step = r.step, .rank = rank_id{r.slot}},
      {{"source", name_of(r.source)}});
}

// --- failures -------------------------------------------------------------------------------------------

void job_report::hear(const record::failure_detected& r) {
  failures_.resize(std::max(failures_.size(), r.number + 1));
  summary_.failures.resize(failures_.size());
  failures_[r.number] = {r.what, r.slot, r.actor};
  auto& numbers = summary_.failures[r.number];
  numbers.kind = to_string(r.what.kind);
  numbers.cause = r.what.cause;
  numbers.rank = r.what.rank.value();
  numbers.step = r.what.step.value();
  if (auto after = r.what.detected_in()) numbers.detected_ms = to_ms(*after);
  const bool hang = r.what.kind == failure_kind::hang || r.what.kind == failure_kind::collective_hang;
  const event happened{.kind = hang ? event_kind::hang : event_kind::failure_detected,
                       .generation = generation_,
                       .step = r.what.step,
                       .rank = r.what.rank,
                       .pid = r.what.pid,
                       .actor = r.actor,
                       .cause = r.what.cause};
  events_.record(happened,
                 {{"kind", to_string(r.what.kind)}, {"detected_ms", numbers.detected_ms.value_or(0.0)}});
  if (hang) {
    auto also = happened;
    also.kind = event_kind::failure_detected;
    events_.record(also,
                   {{"kind", to_string(r.what.kind)}, {"detected_ms", numbers.detected_ms.value_or(0.0)}});
  }
  people_.milestone(tell_detected(story_of(failures_[r.number], numbers)));
}

failure_story job_report::story_of(const known_failure& from, const failure_summary& numbers) const {
  return {.rank = from.what.rank.value(),
          .pid = from.what.pid,
          .what = from.what.cause,
          .step = from.what.step.value(),
          .detected = from.what.detected_in().value_or(duration{0}),
          .recovered = duration{static_cast<duration::rep>(numbers.recovered_ms.value_or(0.0) * 1e6)},
          .steps_lost = numbers.steps_lost,
          .source = numbers.source};
}

void job_report::hear(const record::failure_recovered& r) {
  if (r.number >= failures_.size()) return;
  const auto& what = failures_[r.number].what;
  auto& numbers = summary_.failures[r.number];
  // The strike is told by the clock of the struck process.
  numbers.recovered_ms = std::max(0.0, to_ms(r.at - what.fault_at.value_or(what.detected_at)));
  numbers.steps_lost = r.steps_lost;
  numbers.source = r.source;
  events_.record(
      {.kind = event_kind::resumed, .generation = generation_, .rank = what.rank},
      {{"recovered_ms", *numbers.recovered_ms}, {"steps_lost", r.steps_lost}, {"source", r.source}});
  people_.milestone(tell_recovered(story_of(failures_[r.number], numbers)));
}

void job_report::hear(const record::step_refused& r) {
  events_.record({.kind = event_kind::nan,
                  .generation = generation_,
                  .step = r.step,
                  .rank = r.rank,
                  .cause = r.cause + "; the step is computed again"});
}

void job_report::hear(const record::path_interrupted& r) {
  events_.record({.kind = event_kind::path_interrupted,
                  .generation = generation_,
                  .rank = rank_id{r.slot},
                  .cause = r.cause});
}

void job_report::hear(const record::straggler& r) {
  events_.record({.kind = event_kind::straggler,
                  .generation = generation_,
                  .step = r.step,
                  .rank = rank_id{r.slot},
                  .cause = r.cause});
}

void job_report::hear(const record::resize& r) {
  events_.record({.kind = event_kind::resize_requested, .generation = generation_, .cause = r.cause});
}

void job_report::hear(const record::survivor_killed&) {
  summary_.survivors_kept = false;
}

void job_report::hear(const record::budget_spent& r) {
  events_.record({.kind = event_kind::restart_budget_spent, .generation = generation_, .cause = r.cause});
}

// --- progress -------------------------------------------------------------------------------------------

void job_report::hear(const record::progressed& r) {
  const auto& now = r.report;
  if (!summary_.loss_first) summary_.loss_first = now.first_loss;
  summary_.loss_last = now.loss;
  in_steps_now_ = now.in_steps;
  newest_step_ = now.step.value();
  summary_.steps_committed = newest_step_;
  summary_.samples_committed = newest_step_ * settings_.samples_per_step;
  if (now.non_finite) {
    events_.record({.kind = event_kind::nan,
                    .generation = generation_,
                    .step = now.step,
                    .cause = "the loss is not finite"});
  }
  rate_.update(static_cast<double>(summary_.samples_committed), clock_.now());
  job_progress shown{.step = newest_step_,
                     .steps_total = settings_.steps_total,
                     .loss = now.loss,
                     .samples_per_s = rate_.per_second(),
                     .workers = r.world,
                     .generation = r.generation.value()};
  if (settings_.steps_total > newest_step_ && rate_.per_second() > 0) {
    const auto samples_left =
        static_cast<double>((settings_.steps_total - newest_step_) * settings_.samples_per_step);
    shown.left = duration{static_cast<duration::rep>(samples_left / rate_.per_second() * 1e9)};
  }
  people_.update(shown);
}

void job_report::hear(const record::checkpoint& r) {
  const auto& what = r.report;
  event happened{.generation = what.generation, .step = what.step, .rank = rank_id{r.slot}, .cause = {}};
  switch (what.outcome) {
  case wire::checkpoint_outcome::taken:
    happened.kind = event_kind::checkpoint_taken;
    summary_.checkpoint_stall.record(what.stall);
    return events_.record(happened, {{"stall_ms", to_ms(what.stall)}});
  case wire::checkpoint_outcome::written:
    happened.kind = event_kind::checkpoint_written;
    ++summary_.checkpoints_written;
    summary_.checkpoint_bytes += what.bytes;
    return events_.record(happened,
                          {{"bytes", what.bytes}, {"write_ms", to_ms(what.write)}, {"path", what.text}});
  case wire::checkpoint_outcome::failed:
    happened.kind = event_kind::checkpoint_failed;
    happened.cause = what.text;
    ++summary_.checkpoints_failed;
    events_.record(happened);
    return people_.milestone("checkpoint of step " + to_string(what.step) + " failed: " + what.text);
  case wire::checkpoint_outcome::rejected:
    return hear(record::checkpoint_rejected{what.step, what.text});
  }
}

void job_report::hear(const record::job_finished& r) {
  ended_ = true;
  summary_.exit_reason = r.cause ? r.cause->text : "finished";
  summary_.restarts = r.restarts;
  summary_.workers_end = r.world;
  for (const auto& worker : r.workers) {
    summary_.weights_digest = worker.weights_digest;
    summary_.state_digest = worker.state_digest;
    if (worker.evaluated) summary_.accuracy = worker.accuracy;
    keep_most(summary_.allocations_per_step, worker.allocations_per_step);
    keep_most(summary_.control_allocations_per_s, worker.control_allocations_per_s);
    keep_most(summary_.page_faults_per_step, worker.page_faults_per_step);
    if (worker.cpu_ms_per_step >= 0)
      summary_.cpu_ms_per_step = summary_.cpu_ms_per_step.value_or(0) + worker.cpu_ms_per_step;
    newest_step_ = worker.step.value();
  }
  if (!r.workers.empty()) { // rank 0 speaks for the steps: all ranks march together
    const auto& first = r.workers.front();
    merge(summary_.step_time, first.step_time);
    merge(summary_.comm_wait, first.comm_wait);
    merge(summary_.data_wait, first.data_wait);
    summary_.steps_committed = newest_step_;
    summary_.samples_committed = newest_step_ * settings_.samples_per_step;
  }
  if (r.workers.empty()) { // ended between two reports of progress
    newest_step_ = std::max(newest_step_, r.newest.value());
    summary_.steps_committed = newest_step_;
    summary_.samples_committed = newest_step_ * settings_.samples_per_step;
  }
  people_.finish();
  const auto cause = r.cause ? r.cause->text : std::string{};
  events_.record({.kind = event_kind::job_finished,
                  .generation = generation_,
                  .step = step_id{newest_step_},
                  .cause = cause},
                 {{"reason", summary_.exit_reason}, {"state_digest", summary_.state_digest}});
}

job_summary job_report::summary() const {
  auto now = summary_;
  now.wall = clock_.now() - started_;
  const auto own_steps = newest_step_ - std::min(newest_step_, resumed_from_.value_or(0));
  const auto wall_s = to_s(now.wall);
  if (wall_s > 0) now.samples_per_s = static_cast<double>(own_steps * settings_.samples_per_step) / wall_s;
  const auto in_steps = to_s(in_steps_before_ + in_steps_now_);
  if (wall_s > 0) now.goodput = std::clamp(in_steps / wall_s, 0.0, 1.0);
  return now;
}

} // namespace troupe
