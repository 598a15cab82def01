#include "runtime/train/step_engine.hpp"

#include <algorithm>
#include <cmath>
#include <exception>
#include <new>
#include <string>
#include <utility>

#include "runtime/base/invariant.hpp"
#include "runtime/base/limits.hpp"
#include "runtime/base/probe.hpp"
#include "runtime/policy/canonical_sum.hpp"
#include "runtime/train/flat_math.hpp"
#include "runtime/train/limits.hpp"
#include "runtime/train/state_digest.hpp"

namespace troupe {

namespace {

error bad(const char* setting, std::uint64_t value, const std::string& accepted) {
  return {errc::bad_argument,
          std::string{setting} + " " + std::to_string(value) + ": accepted is " + accepted};
}

std::string range_text(std::uint64_t most) {
  return "1 to " + std::to_string(most);
}

} // namespace

expected<void> validate(const step_settings& s) {
  if (s.shards == 0 || s.shards > limits::shards_max)
    return bad("shards", s.shards, range_text(limits::shards_max));
  if (s.global_batch == 0 || s.global_batch > limits::global_batch_max)
    return bad("global batch", s.global_batch, range_text(limits::global_batch_max));
  if (s.global_batch % s.shards != 0)
    return bad("global batch", s.global_batch,
               "a multiple of the " + std::to_string(s.shards) + " shards, such as " +
                   std::to_string((s.global_batch / s.shards + 1) * s.shards));
  if (s.accumulate == 0 || s.accumulate > limits::accumulate_max)
    return bad("accumulate", s.accumulate, range_text(limits::accumulate_max));
  if (s.bucket_bytes != 0 &&
      (s.bucket_bytes < limits::bucket_bytes_min || s.bucket_bytes > limits::bucket_bytes_max))
    return bad("bucket", s.bucket_bytes,
               "0, or " + std::to_string(limits::bucket_bytes_min) + " to " +
                   std::to_string(limits::bucket_bytes_max) + " bytes");
  if (s.top_k != 0 && !(s.top_k >= limits::top_k_min && s.top_k <= limits::top_k_max))
    return error{errc::bad_argument, "top_k " + std::to_string(s.top_k) + ": accepted is 0, or " +
                                         std::to_string(limits::top_k_min) + " to " +
                                         std::to_string(limits::top_k_max)};
  if (s.top_k != 0 && s.shards > limits::top_k_shards_max)
    return bad("shards with top_k", s.shards, range_text(limits::top_k_shards_max));
  if (s.top_k != 0 && s.wire != element_type::float32)
    return error{errc::bad_argument, "top_k with rounded gradients: accepted is one of the two"};
  if (s.whole_every == 0) return bad("whole_every", s.whole_every, "at least 1");
  if (!std::isfinite(s.clip_norm) || s.clip_norm < 0)
    return error{errc::bad_argument,
                 "clip norm " + std::to_string(s.clip_norm) + ": accepted is a finite number, at least 0"};
  return validate(s.rate);
}

step_engine::step_engine(const step_context& context, const step_settings& settings)
    : context_{context}
    , settings_{settings}
    , pass_{context.store, settings.shards, settings.bucket_bytes, settings.wire, settings.top_k}
    , accumulated_{settings.accumulate > 1 ? context.store.layout().part_elements * sizeof(float) : 0}
    , kept_{settings.top_k != 0 ? context.store.layout().bytes() : 0}
    , alive_{std::make_shared<step_engine*>(this)} {
  invariant(validate(settings).has_value(), "step engine: its settings are valid");
}

step_engine::~step_engine() {
  invariant(idle(), "SE-5: an engine is destroyed while idle");
}

void step_engine::begin(const step_run& run) {
  invariant(idle(), "SE-5: a run begins while the engine is idle");
  invariant(run.reduce != nullptr && run.batches != nullptr, "step engine: a run has all that it works with");
  invariant(run.first_step <= run.last_step, "SE-1: a run does not go backwards");
  run_ = run;
  applied_ = run.first_step;
  sums_ = 0;
  whole_ = applied_;
  keep_whole();
  pass_.plan(run.rank, run.world, *run.reduce);
  context_.box.step_applied.store(applied_.value(), std::memory_order_relaxed);
  run.batches->set_on_ready([queue = &context_.queue, alive = std::weak_ptr{alive_}] {
    queue->post([alive] {
      if (const auto engine = alive.lock()) (*engine)->on_batch_ready();
    });
  });
  step_began_ = context_.clock.now();
  enqueue();
}

void step_engine::end() {
  if (idle()) return;
  ending_ = true;
  probe<"engine.ended_while_starved">::when(phase_ == phase::starved);
  probe<"engine.ended_while_paused">::when(phase_ == phase::paused);
  if (phase_ == phase::starved || phase_ == phase::paused || phase_ == phase::held) enqueue();
}

void step_engine::abandon() {
  if (probe<"engine.abandoned">::when(!idle())) leave();
}

void step_engine::resume() {
  if (phase_ == phase::paused) return guarded([this] { snapshot(); });
  if (phase_ == phase::held) guarded([this] { advance(); });
}

std::string step_engine::state_digest() const {
  return troupe::state_digest(context_.store.layout(), context_.store.arena(), context_.rule.text(),
                              text_of(settings_.rate),
                              {applied_.value(), applied_.value() * samples_per_step()});
}

// The edge at which exceptions of the model and of hooks become values.
template <class Work>
void step_engine::guarded(Work&& work) {
  try {
    work();
  } catch (const std::bad_alloc&) {
    fail({errc::out_of_memory, "an allocation failed on the device's thread"});
  } catch (const std::exception& thrown) {
    fail({errc::actor_failed, thrown.what()});
  } catch (...) {
    fail({errc::actor_failed, "something that is not an exception was thrown"});
  }
}

void step_engine::enqueue() {
  phase_ = phase::queued;
  ++ticket_;
  context_.queue.post([alive = std::weak_ptr{alive_}, ticket = ticket_] {
    if (const auto engine = alive.lock()) (*engine)->on_queue(ticket);
  });
}

void step_engine::on_queue(std::uint64_t ticket) {
  if (ticket != ticket_ || phase_ != phase::queued) return;
  guarded([this] { advance(); });
}

void step_engine::on_batch_ready() {
  if (phase_ == phase::starved) guarded([this] { advance(); });
}

void step_engine::advance() {
  if (probe<"engine.ended">::when(ending_)) return finish(run_end::ended);
  if (std::exchange(run_.snapshot_first, false)) return settled();
  if (applied_ == run_.last_step) return finish(run_end::finished);
  if (!step_open_ && !context_.observer.may_start(applied_.next())) {
    phase_ = phase::held;
    return;
  }
  if (!step_open_) start_step();
  if (next_batch())
    compute_and_reduce();
  else
    phase_ = phase::starved;
}

void step_engine::start_step() {
  const auto computing = applied_.next();
  context_.box.step_started.store(computing.value(), std::memory_order_relaxed);
  now_ = {};
  loss_sum_ = 0;
  micro_ = 0;
  step_open_ = true;
  context_.observer.before_step(computing);
  lap_began_ = context_.clock.now();
}

// True once the batch of `batch_number` is held, or none is needed.
bool step_engine::next_batch() {
  if (const auto range = pass_.range(); range.count > 0) {
    auto next = run_.batches->try_next(run_.generation, step_id{batch_number()});
    if (!next) return false;
    batch_ = std::move(*next);
    invariant(batch_.first_shard == range.first && batch_.shard_count == range.count &&
                  batch_.samples_per_shard == settings_.global_batch / settings_.shards,
              "SE-1: a batch holds exactly the rank's shards");
  }
  now_.data_wait += lap();
  return true;
}

void step_engine::compute_and_reduce() {
  whole_here_ = settings_.top_k == 0;
  pass_.compute(context_.kernels, batch_, batch_number(), *run_.reduce);
  drop_batch();
  now_.compute += lap();
  phase_ = phase::reducing;
  run_.reduce->all_reduce([this](expected<reduction> result) { on_reduced(std::move(result)); });
}

void step_engine::on_reduced(expected<reduction> result) {
  invariant(phase_ == phase::reducing, "SE-3: an all-reduce completes once, in the run that started it");
  now_.comm_wait += lap();
  if (result) return guarded([&] { collect(*result); });
  if (probe<"engine.aborted">::when(result.failure().code == errc::aborted)) return aborted(result.failure());
  fail(result.failure());
}

// The sum of one global batch.
void step_engine::collect(const reduction& result) {
  if (result.number != ++sums_)
    return fail({errc::internal, "SE-9: rank " + std::to_string(run_.rank) + " was not in the sum of step " +
                                     to_string(applied_.next()) + ": it holds the receipt of sum " +
                                     std::to_string(result.number) + ", not of sum " +
                                     std::to_string(sums_)});
  const auto sum = result.sum;
  const auto tail = read_tail(sum);
  if (tail.samples != settings_.global_batch || tail.tags != settings_.shards * batch_tag(batch_number()))
    return fail({errc::internal, "SE-1: the sum of step " + to_string(applied_.next()) + " holds " +
                                     std::to_string(tail.samples) + " samples, or samples of another step"});
  loss_sum_ += tail.loss_sum;
  ++micro_;
  const auto gradient = sum.first(context_.store.layout().part_elements);
  if (!all_finite(gradient)) return refuse();
  if (settings_.accumulate == 1) return apply(gradient);
  const auto total = accumulated_.as<float>();
  if (micro_ == 1)
    std::ranges::copy(gradient, total.begin());
  else
    add_into(total, gradient);
  if (micro_ == settings_.accumulate) return all_finite(total) ? apply(total) : refuse();
  enqueue();
}

void step_engine::apply(std::span<const float> gradient) {
  const auto& store = context_.store;
  const auto part = store.layout().part_elements;
  now_.learning_rate = rate_at(settings_.rate, applied_.value());
  context_.rule.apply({.parameters = store.parameters(),
                       .slots = store.arena().subspan(part, context_.rule.slot_names().size() * part),
                       .gradient = gradient,
                       .scale = clipped_scale(gradient),
                       .rate = now_.learning_rate,
                       .step = applied_.value()});
  applied_ = applied_.next();
  step_open_ = false;
  context_.box.step_applied.store(applied_.value(), std::memory_order_relaxed);
  now_.update = lap();
  now_.step = applied_;
  now_.samples = samples_per_step();
  now_.loss = loss_sum_ / static_cast<double>(samples_per_step());
  now_.non_finite = !std::isfinite(now_.loss);
  now_.total = lap_began_ - step_began_;
  step_began_ = lap_began_;
  context_.observer.on_step(now_);
  after_step();
}

// What turns the sum over samples into the mean, clipped to the norm that the settings allow.
float step_engine::clipped_scale(std::span<const float> gradient) {
  const double mean = 1.0 / static_cast<double>(samples_per_step());
  if (settings_.clip_norm == 0) return static_cast<float>(mean);
  now_.gradient_norm = std::sqrt(sum_of_squares(gradient)) * mean;
  const double allowed = double{settings_.clip_norm};
  return static_cast<float>(now_.gradient_norm > allowed ? mean * (allowed / now_.gradient_norm) : mean);
}

void step_engine::after_step() {
  const bool due = applied_.value() % settings_.whole_every == 0 || applied_ == run_.last_step;
  settings_.top_k != 0 && due ? gather() : settled();
}

// SE-11. Each residual goes from the rank that has it to all others.
void step_engine::gather() {
  phase_ = phase::gathering;
  gathers_left_ = settings_.shards;
  gather_failure_.reset();
  context_.observer.gathering(applied_);
  auto* const group = run_.reduce->group();
  if (group == nullptr && run_.world > 1)
    return fail({errc::internal, "the residuals of other ranks cannot be had: no rank group"});
  for (std::uint32_t rank = 0, world = run_.world; rank < world; ++rank) {
    const auto range = shard_range(settings_.shards, world, rank);
    for (auto shard = range.first; shard < range.end(); ++shard) {
      if (group == nullptr) {
        on_gathered({});
        continue;
      }
      const auto bytes = std::as_writable_bytes(pass_.residual(shard));
      group->start({.call = group_call::broadcast,
                    .elements = bytes.size() / sizeof(float),
                    .peer = rank,
                    .in = bytes,
                    .out = bytes},
                   [this](const expected<void>& one) { on_gathered(one); });
    }
  }
}

void step_engine::on_gathered(const expected<void>& one) {
  invariant(phase_ == phase::gathering, "SE-11: residuals come in the run that asked for them");
  if (!one && !gather_failure_) gather_failure_ = one.failure();
  if (--gathers_left_ != 0) return;
  if (!gather_failure_) {
    whole_ = applied_;
    keep_whole();
    step_began_ = context_.clock.now();
    return guarded([this] { settled(); });
  }
  if (probe<"engine.aborted_while_gathering">::when(gather_failure_->code == errc::aborted))
    return aborted(*gather_failure_);
  fail(*gather_failure_);
}

void step_engine::keep_whole() {
  whole_here_ = true;
  if (settings_.top_k != 0) std::ranges::copy(context_.store.bytes(), kept_.bytes().begin());
}

void step_engine::settled() {
  if (!context_.observer.snapshot_due(applied_)) return enqueue();
  stall_began_ = context_.clock.now();
  snapshot();
}

void step_engine::snapshot() {
  phase_ = phase::paused;
  if (!context_.observer.try_snapshot(applied_)) return;
  step_began_ = context_.clock.now();
  context_.observer.on_snapshot(applied_, step_began_ - stall_began_);
  enqueue();
}

// SE-10. Whose values these were is seen in the contributions: they are as they were before the sum.
void step_engine::refuse() {
  context_.observer.on_refused(applied_.next(), !pass_.finite(*run_.reduce));
  finish(run_end::refused);
}

void step_engine::aborted(const error& why) {
  context_.observer.on_aborted(why);
  finish(run_end::aborted);
}

void step_engine::finish(run_end how) {
  leave();
  if (!whole_here_) {
    probe<"engine.back_to_whole">::hit();
    std::ranges::copy(kept_.bytes(), context_.store.bytes().begin());
    whole_here_ = true;
    applied_ = whole_;
    context_.box.step_applied.store(applied_.value(), std::memory_order_relaxed);
  }
  context_.observer.on_ended(applied_, how);
}

void step_engine::fail(const error& cause) {
  probe<"engine.failed">::hit();
  leave();
  context_.observer.on_failed(applied_, cause);
}

void step_engine::leave() {
  invariant(!idle(), "SE-5: a run is answered once");
  drop_batch();
  run_.batches->set_on_ready({});
  phase_ = phase::idle;
  ending_ = false;
  step_open_ = false;
}

void step_engine::drop_batch() {
  if (batch_.memory) run_.batches->give_back(std::move(batch_));
}

duration step_engine::lap() {
  const auto now = context_.clock.now();
  return now - std::exchange(lap_began_, now);
}

} // namespace troupe
