#include "actors/worker/worker_core.hpp"

#include <algorithm>

#include "runtime/base/invariant.hpp"
#include "runtime/base/planted_bug.hpp"
#include "runtime/base/probe.hpp"
#include "runtime/base/units.hpp"

namespace troupe {

worker_core::worker_core(worker_settings settings, trainer& compute, worker_ports& ports)
    : settings_{std::move(settings)}
    , trainer_{compute}
    , ports_{ports} {
  trainer_.set_listener(this);
}

worker_core::~worker_core() {
  trainer_.set_listener(nullptr);
}

// --- what the director says -----------------------------------------------------------------------------

void worker_core::on_director(const wire::control& message) {
  std::visit([this](const auto& m) { hear(m); }, message);
}

void worker_core::hear(const wire::prepare_generation& m) {
  if (phase_ != phase::idle || m.generation <= plan_.generation) return; // WK-3
  plan_ = m;
  phase_ = phase::preparing;
  connected_ = state_ready_ = start_asked_ = false;
  connecting_ = true;
  offer_.reset();
  forget_requests_before(m.generation);
  const auto world = static_cast<std::uint32_t>(m.members.size());
  trainer_.faults().update(m.rank, world, m.fired_faults, settings_.job_started);
  trainer_.connect(m.generation, m.collective, m.rank, m.members);
  prefetch_from(m.step);
  get_state();
}

void worker_core::get_state() {
  switch (plan_.source) {
  case wire::state_source::keep:
    if (!holds_state_ || applied_ != plan_.step) {
      return prepare_failed({errc::internal, "asked to keep step " + to_string(plan_.step) + ", holds " +
                                                 (holds_state_ ? to_string(applied_) : "nothing")});
    }
    return state_settled({});
  case wire::state_source::fresh:
    drop_state();
    arena_busy_ = true;
    return trainer_.initialise([this, alive = std::weak_ptr<int>{alive_}] {
      if (alive.expired()) return;
      arena_busy_ = false;
      state_settled({});
    });
  case wire::state_source::peer:
    return request_from_peer();
  case wire::state_source::checkpoint:
    return load_from_checkpoint();
  }
}

void worker_core::load_from_checkpoint() {
  drop_state();
  arena_busy_ = true;
  ports_.load_checkpoint(
      plan_.checkpoint, trainer_.state_bytes(),
      [this, alive = std::weak_ptr<int>{alive_}](expected<checkpoint_metadata> loaded) {
        if (alive.expired()) return;
        arena_busy_ = false;
        if (probe<"worker.checkpoint_not_loaded">::when(!loaded)) return state_settled(loaded.failure());
        if (loaded->step == plan_.step) return state_settled({});
        state_settled(error{errc::corrupt, plan_.checkpoint + ": holds step " + to_string(loaded->step)});
      });
}

// The arena holds the planned step, or the way there failed. In a generation that has ended meanwhile, what
// arrived still counts: the state is whole and its step is known.
void worker_core::state_settled(const expected<void>& result) {
  if (result) {
    holds_state_ = state_ready_ = true;
    applied_ = plan_.step;
    serve_next();
  } else if (phase_ == phase::preparing) {
    return prepare_failed(result.failure());
  }
  if (probe<"worker.state_came_after_the_end">::when(phase_ == phase::stopping)) return check_stopped();
  check_prepared();
}

void worker_core::on_connected(generation_id generation, expected<void> result) {
  if (generation != plan_.generation) return;
  connecting_ = false;
  if (probe<"worker.connected_after_the_end">::when(phase_ == phase::stopping)) return check_stopped();
  if (probe<"worker.not_connected">::when(!result)) return prepare_failed(result.failure());
  connected_ = true;
  check_prepared();
}

void worker_core::check_prepared() {
  if (phase_ != phase::preparing || !connected_ || !state_ready_) return;
  phase_ = phase::prepared; // WK-1
  ports_.send_director(wire::generation_prepared{plan_.generation, plan_.step, plan_.source});
}

void worker_core::prepare_failed(const error& cause) {
  ports_.send_director(wire::prepare_failed{plan_.generation, cause});
}

void worker_core::hear(const wire::start_generation& m) {
  if (m.generation != plan_.generation || phase_ != phase::prepared) return; // WK-3
  start_asked_ = true;
  begin_if_ready();
}

void worker_core::begin_if_ready() {
  if (!start_asked_ || phase_ != phase::prepared) return;
  if (probe<"worker.start_waits_for_transfer">::when(serving_)) return; // WK-4
  phase_ = phase::running;
  digest_.clear(); // of a state that is no more
  // A generation begins where another one died: its checkpoint of this very step may have died with it.
  const bool kept = plan_.step == step_id{0} || plan_.source == wire::state_source::checkpoint;
  probe<"worker.checkpoint_due_again">::when(!kept);
  const bool again = TROUPE_PLANTED("worker.step_applied_twice") && plan_.step != step_id{0};
  const auto first = again ? step_id{plan_.step.value() - 1} : plan_.step;
  trainer_.begin(plan_.generation, first, plan_.rank == rank_id{0}, kept);
}

void worker_core::hear(const wire::end_generation& m) {
  forget_requests_before(m.generation.next());
  if (m.generation != plan_.generation) { // WK-3: never joined; say what is held
    if (m.generation > plan_.generation) plan_.generation = m.generation;
    ports_.send_director(wire::generation_stopped{m.generation, applied_, holds_state_ && !arena_busy_});
    return;
  }
  if (probe<"worker.ended_while_idle">::when(phase_ == phase::idle)) {
    ports_.send_director(wire::generation_stopped{m.generation, applied_, holds_state_});
    return;
  }
  if (phase_ == phase::stopping) return;
  probe<"worker.ended_while_preparing">::when(phase_ == phase::preparing);
  probe<"worker.ended_while_prepared">::when(phase_ == phase::prepared);
  probe<"worker.ended_while_running">::when(phase_ == phase::running);
  probe<"worker.ended_while_finishing">::when(phase_ == phase::finishing);
  keep_flight(m.cause); // before the abort: who has arrived where is as the failure left it
  phase_ = phase::stopping;
  ports_.stop_prefetch();
  trainer_.abort();
  check_stopped();
}

void worker_core::check_stopped() {
  if (phase_ != phase::stopping || trainer_.running() || arena_busy_ || connecting_) return; // WK-2
  phase_ = phase::idle;
  ports_.send_director(wire::generation_stopped{plan_.generation, applied_, holds_state_});
}

void worker_core::hear(const wire::stop_worker& m) {
  if (phase_ == phase::running) keep_flight(m.cause);
  ports_.stop_prefetch();
  trainer_.abort();
  ports_.leave(m.cause);
}

// Of a generation that has begun, only: before, nobody has called anything.
void worker_core::keep_flight(const std::string& cause, flight_writer by) {
  if (phase_ != phase::running && phase_ != phase::finishing) return;
  ports_.keep_flight({.generation = plan_.generation,
                      .rank = plan_.rank,
                      .world = static_cast<std::uint32_t>(plan_.members.size()),
                      .by = by,
                      .cause = cause});
}

// --- steps ----------------------------------------------------------------------------------------------

void worker_core::on_first_step(generation_id generation, step_id step) {
  if (generation == plan_.generation) ports_.send_director(wire::first_step{generation, step});
}

void worker_core::on_ended(generation_id generation, step_id applied, run_end how) {
  if (generation != plan_.generation) return;
  applied_ = applied;
  if (phase_ == phase::stopping) return check_stopped();
  if (how == run_end::finished) {
    phase_ = phase::finishing;
    ports_.stop_prefetch();
    return check_finished();
  }
  probe<"worker.aborted_by_peer">::hit();
  // By a peer that saw the end of the generation first, and the director's word is on its way; or by the
  // collective itself, which the director has been told (`on_aborted`).
}

// The state is whole. The director waits for another cause before it takes the collective's word.
void worker_core::on_aborted(generation_id generation, const error& why) {
  if (generation != plan_.generation || phase_ != phase::running) return;
  ports_.send_director(wire::actor_failed{.generation = generation,
                                          .actor = "collective",
                                          .step = trainer_.progress_now().step_started.value(),
                                          .text = why.text,
                                          .code = errc::aborted});
}

// The state is whole, and the director's word is on its way once it has heard everybody.
void worker_core::on_refused(generation_id generation, step_id computing, bool ours) {
  if (generation == plan_.generation) ports_.send_director(wire::step_refused{generation, computing, ours});
}

// The director hears at once; the fresh life says again (`on_restarted`) that it holds nothing.
void worker_core::on_failed(generation_id generation, step_id applied, const error& cause) {
  if (generation != plan_.generation) return;
  probe<"worker.step_threw">::hit();
  keep_flight(cause.text, flight_writer::failed);
  applied_ = applied;
  drop_state(); // what threw may have left anything behind
  ports_.send_director(wire::actor_failed{.generation = generation,
                                          .actor = "worker",
                                          .step = applied.value() + 1,
                                          .text = cause.text,
                                          .fault_ns = trainer_.faults().last_strike_ns(),
                                          .code = cause.code});
  ports_.stop_prefetch();
  ports_.fail(cause);
}

// What the former life's mailbox held is gone, perhaps with the end of the generation in it: so that is
// answered unasked, once the device stands still. A second answer changes nothing (MS-5).
void worker_core::on_restarted(generation_id newest) {
  if (newest <= plan_.generation) return;
  probe<"worker.restarted">::hit();
  plan_.generation = newest;
  phase_ = phase::stopping;
  trainer_.abort();
  check_stopped();
}

void worker_core::check_finished() {
  if (phase_ != phase::finishing || !checkpoints_in_flight_.empty()) return;
  report_progress();
  if (settings_.test_data == nullptr || plan_.rank != rank_id{0}) return finish();
  trainer_.evaluate(settings_.test_data, [this, alive = std::weak_ptr<int>{alive_},
                                          generation = plan_.generation](expected<evaluation> result) {
    if (alive.expired()) return;
    if (probe<"worker.evaluated_in_vain">::when(generation != plan_.generation || phase_ != phase::finishing))
      return;
    wire::worker_finished done{.generation = plan_.generation, .step = applied_};
    if (result) {
      done.evaluated = true;
      done.accuracy = accuracy(*result);
    }
    send_finished(std::move(done));
  });
}

void worker_core::finish() {
  send_finished({.generation = plan_.generation, .step = applied_});
}

void worker_core::send_finished(wire::worker_finished done) {
  done.weights_digest = trainer_.weights_digest();
  done.state_digest = trainer_.state_digest(applied_);
  trainer_.add_statistics(done);
  ports_.send_director(done);
}

void worker_core::report_progress() {
  if (plan_.rank != rank_id{0} || (phase_ != phase::running && phase_ != phase::finishing)) return;
  const auto now = trainer_.statistics();
  if (now.steps_done == 0) return;
  ports_.send_director(wire::step_report{plan_.generation, now.step, now.steps_done, now.loss, now.in_steps,
                                         now.first_loss, now.non_finite});
}

// --- data and checkpoints -------------------------------------------------------------------------------

void worker_core::prefetch_from(step_id step) {
  if (TROUPE_PLANTED("worker.step_applied_twice") && step != step_id{0}) step = step_id{step.value() - 1};
  const auto& steps = trainer_.settings().steps;
  const auto range =
      shard_range(steps.shards, static_cast<std::uint32_t>(plan_.members.size()), plan_.rank.value());
  const auto pieces = std::uint64_t{steps.accumulate}; // the stream counts global batches
  ports_.assign_prefetch({.generation = plan_.generation,
                          .first_step = step_id{step.value() * pieces},
                          .last_step = step_id{trainer_.settings().last_step.value() * pieces},
                          .first_shard = range.first,
                          .shard_count = range.count,
                          .shards = steps.shards,
                          .global_batch = steps.global_batch,
                          .seed = trainer_.settings().seed});
}

void worker_core::on_prefetcher_restarted(const std::string& cause) {
  const bool in_generation =
      phase_ == phase::preparing || phase_ == phase::prepared || phase_ == phase::running;
  const auto now = trainer_.progress_now();
  ports_.send_director(wire::actor_failed{.generation = plan_.generation,
                                          .actor = "prefetcher",
                                          .step = now.step_started.value(),
                                          .text = cause,
                                          .healed_locally = true,
                                          .fault_ns = trainer_.faults().last_strike_ns()});
  if (probe<"worker.prefetcher_restarted_idle">::when(!in_generation)) return;
  probe<"worker.prefetcher_restarted">::hit();
  // The engine drops what it has had already, so starting at the newest applied step is right in any case.
  prefetch_from(phase_ == phase::running ? std::max(now.step_applied, plan_.step) : plan_.step);
  ports_.send_director(wire::first_step{plan_.generation, now.step_applied});
}

void worker_core::on_snapshot(generation_id generation, step_id step, lease state, duration stall) {
  const auto& settings = trainer_.settings();
  checkpoint_metadata metadata{.job = settings_.job,
                               .step = step,
                               .generation = generation,
                               .sample_cursor =
                                   step.value() * settings.steps.accumulate * settings.steps.global_batch,
                               .seed = settings.seed,
                               .shards = settings.steps.shards,
                               .global_batch = settings.steps.global_batch,
                               .world = static_cast<std::uint32_t>(plan_.members.size()),
                               .optimizer = trainer_.rule().text(),
                               .schedule = text_of(settings.steps.rate),
                               .wire = std::string{to_string(settings.steps.wire)},
                               .top_k = format_number(settings.steps.top_k)};
  if (TROUPE_PLANTED("worker.checkpoint_of_uncommitted_step")) metadata.step = step.next();
  checkpoints_in_flight_.insert(metadata.step);
  ports_.send_director(wire::checkpoint_report{.generation = generation,
                                               .outcome = wire::checkpoint_outcome::taken,
                                               .step = step,
                                               .bytes = state.bytes().size(),
                                               .stall = stall});
  ports_.write_checkpoint({std::move(state), std::move(metadata)}, stall);
}

void worker_core::on_checkpoint_settled(const wire::checkpoint_report& report) {
  probe<"worker.checkpoint_not_written">::when(report.outcome == wire::checkpoint_outcome::failed);
  checkpoints_in_flight_.erase(report.step);
  ports_.send_director(report);
  trainer_.resume();
  check_finished();
}

} // namespace troupe
