#include "actors/worker/trainer.hpp"

#include <cstring>
#include <exception>

#include "runtime/base/digest.hpp"
#include "runtime/base/invariant.hpp"
#include "runtime/base/probe.hpp"
#include "runtime/train/state_digest.hpp"
#include "runtime/train/top_k.hpp"

namespace troupe {

namespace {

constexpr std::uint64_t warm_after_steps = 50; // buffers have grown and been touched by then

expected<std::unique_ptr<model>> build_model(const model_factory& factory, parameter_store& store) {
  try {
    return factory(store);
  } catch (const std::exception& problem) {
    return error{errc::bad_argument, std::string{"the model cannot be built: "} + problem.what()};
  }
}

wire::histogram to_wire(const latency_histogram& from) {
  wire::histogram out;
  for (const auto& bucket : from.buckets()) {
    out.indices.push_back(bucket.index);
    out.counts.push_back(bucket.count);
  }
  out.max = from.max();
  return out;
}

} // namespace

trainer::trainer(environment& outside, const trainer_settings& settings,
                 std::unique_ptr<fault_injector> faults)
    : outside_{outside}
    , settings_{settings}
    , faults_{std::move(faults)}
    , flights_{outside.box.flight, outside.box.step_started, outside.clock} {}

expected<std::unique_ptr<trainer>> trainer::make(environment& outside, const trainer_settings& settings,
                                                 const model_factory& factory,
                                                 std::unique_ptr<fault_injector> faults) {
  if (auto valid = validate(settings.steps); !valid) return valid.failure();
  std::unique_ptr<trainer> made{new trainer{outside, settings, std::move(faults)}};
  made->store_ = std::make_unique<parameter_store>(settings.seed);
  auto kernels = build_model(factory, *made->store_);
  if (!kernels) return kernels.failure();
  made->model_ = std::move(*kernels);
  auto rule = make_optimizer(settings.rule);
  if (!rule) return rule.failure();
  made->rule_ = std::move(*rule);
  freeze_state(*made->store_, *made->rule_, settings.steps.shards, settings.steps.top_k);
  made->engine_ =
      std::make_unique<step_engine>(step_context{*made->model_, *made->store_, *made->rule_,
                                                 outside.compute.queue(), outside.clock, outside.box, *made},
                                    settings.steps);
  made->batches_ = std::make_shared<batch_stream>(settings.ready_batches, settings.features);
  if (settings.checkpoint_every != 0) {
    made->slots_ = std::make_unique<snapshot_slots>(settings.snapshot_slots, made->store_->layout().bytes());
  }
  made->doing(activity::holding);
  return made;
}

trainer::~trainer() {
  if (engine_ != nullptr) engine_->abandon();
}

// Posts an answer to the loop; it reaches the listener that is set there, if the trainer still lives.
template <class Call>
void trainer::answer(Call call) {
  outside_.loop.post([this, alive = std::weak_ptr<int>{alive_}, call = std::move(call)]() mutable {
    if (alive.expired() || probe<"trainer.answer_unheard">::when(listener_ == nullptr)) return;
    call(*listener_);
  });
}

void trainer::doing(activity what) {
  activity_since_ns_.store(to_ns(outside_.clock.now()));
  activity_.store(static_cast<std::uint8_t>(what));
}

// Marks the time inside an all-reduce, so that who waits for another rank is told apart from who hangs.
class trainer::watched_communicator final : public communicator {
public:
  watched_communicator(trainer& owner, std::unique_ptr<communicator> inner)
      : owner_{owner}
      , inner_{std::move(inner)} {}
  [[nodiscard]] std::span<float> contribution(std::size_t index) override {
    return inner_->contribution(index);
  }
  void begin(element_range part, part_done done) override { inner_->begin(part, std::move(done)); }
  void all_reduce(all_reduce_done done) override {
    owner_.doing(activity::in_collective);
    inner_->all_reduce(std::move(done));
  }
  void abort() noexcept override { inner_->abort(); }
  [[nodiscard]] std::vector<std::uint64_t> arrivals() const override { return inner_->arrivals(); }
  [[nodiscard]] rank_group* group() override { return inner_->group(); }

private:
  trainer& owner_;
  std::unique_ptr<communicator> inner_;
};

// --- between runs ---------------------------------------------------------------------------------------

collective_shape trainer::shape(generation_id generation, const std::vector<wire::member>& members) const {
  auto made = engine_->shape();
  made.generation = generation;
  made.world = static_cast<std::uint32_t>(members.size());
  for (const auto& member : members)
    made.members.push_back({member.incarnation, member.address});
  return made;
}

void trainer::connect(generation_id generation, const std::string& descriptor, rank_id rank,
                      const std::vector<wire::member>& members) {
  doing(activity::loading);
  auto place = std::make_shared<std::string>(descriptor);
  auto meeting = std::make_shared<collective_shape>(shape(generation, members));
  outside_.compute.queue().post([this, generation, place, rank, meeting] {
    { // the next one may need what this one holds
      const std::lock_guard lock{communicator_mutex_};
      communicator_.reset();
    }
    auto made = outside_.collectives.connect(*place, *meeting, rank);
    expected<void> result;
    if (made) {
      auto recorded = flights_.watch(std::move(*made), *meeting);
      const std::lock_guard lock{communicator_mutex_};
      communicator_ = std::make_shared<watched_communicator>(*this, std::move(recorded));
      communicator_generation_ = generation;
      rank_ = rank;
      world_ = meeting->world;
    } else {
      probe<"trainer.not_connected">::hit();
      result = made.failure();
    }
    auto held = std::make_shared<expected<void>>(std::move(result));
    answer([generation, held](trainer_listener& to) { to.on_connected(generation, *held); });
  });
}

void trainer::initialise(std::function<void()> done) {
  invariant(!running_, "TN-2: the state is touched only while no run is open");
  auto reply = std::make_shared<std::function<void()>>(std::move(done));
  outside_.compute.queue().post([this, reply] {
    store_->initialise();
    outside_.loop.post([alive = std::weak_ptr<int>{alive_}, reply] {
      if (!alive.expired()) (*reply)();
    });
  });
}

void trainer::digest_state(digest_told done) {
  invariant(!running_, "TN-2: the state is read by others only while no run is open");
  auto reply = std::make_shared<digest_told>(std::move(done));
  outside_.compute.queue().post([this, reply] {
    auto digest = std::make_shared<std::string>(digest_of(store_->bytes()));
    outside_.loop.post([alive = std::weak_ptr<int>{alive_}, reply, digest] {
      if (!alive.expired()) (*reply)(*digest);
    });
  });
}

void trainer::begin(generation_id generation, step_id first_step, bool takes_checkpoints, bool kept) {
  invariant(!running_, "SE-5: one run at a time");
  running_ = true;
  outside_.compute.queue().post([this, generation, first_step, takes_checkpoints, kept] {
    generation_ = generation;
    takes_checkpoints_ = takes_checkpoints && slots_ != nullptr;
    first_of_run_ = true;
    warm_ = last_ = {};
    {
      const std::lock_guard lock{statistics_mutex_};
      statistics_ = {.step = first_step};
    }
    doing(activity::computing);
    engine_->begin({generation, communicator_.get(), batches_.get(), rank_.value(), world_, first_step,
                    settings_.last_step, takes_checkpoints_ && !kept});
  });
}

// --- during a run ---------------------------------------------------------------------------------------

void trainer::abort() {
  {
    const std::lock_guard lock{communicator_mutex_};
    if (communicator_ != nullptr) communicator_->abort();
  }
  outside_.compute.queue().post([this] { engine_->end(); });
}

// A run that is open answers through the loop, so whoever comes back from the device after that is last.
void trainer::close(std::function<void()> done) {
  abort();
  auto after = std::make_shared<std::function<void()>>(std::move(done));
  outside_.compute.queue().post([this, alive = std::weak_ptr<int>{alive_}, after] {
    outside_.loop.post([this, alive, after] {
      if (alive.expired()) return;
      probe<"trainer.closed_in_a_run">::when(running_) ? close(std::move(*after)) : (*after)();
    });
  });
}

void trainer::resume() {
  outside_.compute.queue().post([this] { engine_->resume(); });
}

bool trainer::may_start(step_id computing) {
  return faults_ == nullptr || faults_->empty() || faults_->ready(computing);
}

void trainer::before_step(step_id computing) {
  doing(activity::computing);
  if (faults_ == nullptr || faults_->empty()) return;
  faults_->on_step(computing);
}

void trainer::on_step(const observation& what) {
  step_time_.record(what.total);
  comm_wait_.record(what.comm_wait);
  data_wait_.record(what.data_wait);
  step_busy_ns_.store((what.total - what.comm_wait).count());
  const std::lock_guard lock{statistics_mutex_};
  ++statistics_.steps_done;
  if (statistics_.steps_done == warm_after_steps || what.step == settings_.last_step) count_steady_state();
  statistics_.step = what.step;
  statistics_.loss = what.loss;
  statistics_.in_steps += what.total;
  statistics_.non_finite = statistics_.non_finite || what.non_finite;
  if (!first_of_run_) return;
  first_of_run_ = false;
  statistics_.first_loss = what.loss;
  answer([generation = generation_, step = what.step](trainer_listener& to) {
    to.on_first_step(generation, step);
  });
}

// Of the run's steps between the fiftieth and the last.
void trainer::count_steady_state() {
  auto& place = statistics_.steps_done == warm_after_steps ? warm_ : last_;
  place = {statistics_.steps_done, outside_.clock.now(), outside_.self.counters()};
}

bool trainer::snapshot_due(step_id step) {
  if (!takes_checkpoints_) return false;
  return step.value() % settings_.checkpoint_every == 0 || step == settings_.last_step;
}

bool trainer::try_snapshot(step_id step) {
  auto slot = slots_->try_take(step); // TN-3
  if (probe<"trainer.no_slot_free">::when(!slot)) return false;
  std::memcpy(slot.bytes().data(), store_->bytes().data(), store_->bytes().size());
  pending_snapshot_ = std::move(slot);
  return true;
}

void trainer::on_snapshot(step_id step, duration stall) {
  stall_.record(stall);
  auto held = std::make_shared<lease>(std::move(pending_snapshot_));
  answer([generation = generation_, step, stall, held](trainer_listener& to) {
    to.on_snapshot(generation, step, std::move(*held), stall);
  });
}

void trainer::on_refused(step_id computing, bool ours) {
  answer([generation = generation_, computing, ours](trainer_listener& to) {
    to.on_refused(generation, computing, ours);
  });
}

void trainer::on_aborted(const error& why) {
  auto held = std::make_shared<error>(why);
  answer([generation = generation_, held](trainer_listener& to) { to.on_aborted(generation, *held); });
}

void trainer::on_ended(step_id applied, run_end how) noexcept {
  doing(activity::holding);
  outside_.loop.post([this, alive = std::weak_ptr<int>{alive_}, generation = generation_, applied, how] {
    if (alive.expired()) return;
    running_ = false;
    if (listener_ != nullptr) listener_->on_ended(generation, applied, how);
  });
}

void trainer::on_failed(step_id applied, const error& cause) noexcept {
  doing(activity::holding);
  auto held = std::make_shared<error>(cause);
  outside_.loop.post([this, alive = std::weak_ptr<int>{alive_}, generation = generation_, applied, held] {
    if (alive.expired()) return;
    running_ = false;
    if (listener_ != nullptr) listener_->on_failed(generation, applied, *held);
  });
}

// --- at the end, and views ------------------------------------------------------------------------------

void trainer::evaluate(std::shared_ptr<const dataset> data, evaluated done) {
  invariant(!running_, "TN-2: the state is read only while no run is open");
  doing(activity::evaluating);
  auto reply = std::make_shared<evaluated>(std::move(done));
  outside_.compute.queue().post([this, data, reply] {
    dataset_evaluation pass{*data};
    auto result = std::make_shared<expected<evaluation>>(pass.run(*model_, *store_));
    doing(activity::holding);
    outside_.loop.post([alive = std::weak_ptr<int>{alive_}, reply, result] {
      if (!alive.expired()) (*reply)(*result);
    });
  });
}

std::string trainer::state_digest(step_id step) const {
  const auto samples = step.value() * engine_->samples_per_step();
  return troupe::state_digest(store_->layout(), store_->arena(), rule_->text(), text_of(settings_.steps.rate),
                              {step.value(), samples});
}

std::function<std::string(const snapshot&)> trainer::snapshot_digest() const {
  return [this](const snapshot& what) {
    const auto bytes = what.state.bytes();
    const std::span<const float> arena{reinterpret_cast<const float*>(bytes.data()),
                                       bytes.size() / sizeof(float)};
    const auto step = what.metadata.step.value();
    return troupe::state_digest(store_->layout(), arena, rule_->text(), text_of(settings_.steps.rate),
                                {step, step * engine_->samples_per_step()});
  };
}

state_layout trainer::layout() const {
  return layout_of(store_->layout(), settings_.program);
}

state_layout layout_of(const arena_layout& from, const std::string& program) {
  state_layout out{.program = program, .parameter_elements = from.part_elements, .slots = from.slots};
  for (const auto& parameter : from.parameters) {
    out.tensors.push_back(
        {parameter.name, {parameter.shape.begin(), parameter.shape.end()}, parameter.offset});
  }
  return out;
}

void trainer::add_statistics(wire::worker_finished& out) const {
  out.step_time = to_wire(step_time_);
  out.comm_wait = to_wire(comm_wait_);
  out.data_wait = to_wire(data_wait_);
  out.stall = to_wire(stall_);
  out.loss = statistics().loss;
  if (warm_.step == 0 || last_.step <= warm_.step) return;
  const auto steps = static_cast<double>(last_.step - warm_.step);
  const auto per_step = [&](std::uint64_t process_counters::*what) {
    return static_cast<double>(last_.counted.*what - warm_.counted.*what) / steps;
  };
  out.page_faults_per_step = per_step(&process_counters::page_faults);
  out.cpu_ms_per_step = to_ms(last_.counted.cpu - warm_.counted.cpu) / steps;
  if (!last_.counted.counts_allocations) return;
  out.allocations_per_step = per_step(&process_counters::data_allocations);
  out.control_allocations_per_s =
      per_step(&process_counters::loop_allocations) * steps / to_s(last_.at - warm_.at);
}

progress trainer::progress_now() const {
  const auto since = time_from_ns(activity_since_ns_.load());
  progress now{.step_applied = step_id{outside_.box.step_applied.load()},
               .step_started = step_id{outside_.box.step_started.load()},
               .doing = static_cast<activity>(activity_.load()),
               .doing_for = outside_.clock.now() - since,
               .step_busy = duration{step_busy_ns_.load()},
               .arrivals = own_arrivals()};
  if (const auto newest = outside_.box.flight.newest()) {
    now.call = newest->call;
    now.call_number = newest->sequence;
  }
  return now;
}

void trainer::describe(flight_header& about) const {
  about.now = outside_.clock.now();
  about.step_started = step_id{outside_.box.step_started.load()};
  about.step_applied = step_id{outside_.box.step_applied.load()};
  about.arrivals = arrivals();
  about.groups = flights_.groups();
}

std::uint64_t trainer::own_arrivals() const {
  const std::lock_guard lock{communicator_mutex_};
  if (communicator_ == nullptr) return 0;
  const auto all = communicator_->arrivals();
  return rank_.value() < all.size() ? all[rank_.value()] : 0;
}

std::vector<std::uint64_t> trainer::arrivals() const {
  const std::lock_guard lock{communicator_mutex_};
  return communicator_ == nullptr ? std::vector<std::uint64_t>{} : communicator_->arrivals();
}

std::size_t trainer::leases_out() const {
  return batches_->lent() + (slots_ != nullptr ? slots_->count() - slots_->available() : 0);
}

training_statistics trainer::statistics() const {
  const std::lock_guard lock{statistics_mutex_};
  return statistics_;
}

} // namespace troupe
