// Doubles of the training room's tests: an executor, a clock, a collective, a stream and an observer that do
// nothing by themselves. A test drives them; none allocates once it is set up.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "runtime/base/bounded_queue.hpp"
#include "runtime/base/buffer_pool.hpp"
#include "runtime/base/counter_rng.hpp"
#include "runtime/policy/canonical_sum.hpp"
#include "runtime/policy/group_table.hpp"
#include "runtime/seams/clock.hpp"
#include "runtime/seams/collective.hpp"
#include "runtime/seams/executor.hpp"
#include "runtime/seams/sum_parts.hpp"
#include "runtime/train/step_engine.hpp"
#include "runtime/train/top_k.hpp"

namespace troupe::testing {

class manual_executor final : public executor {
public:
  void post(task work) override { invariant(queue_.try_push(std::move(work)), "test: few tasks are queued"); }
  bool run_one() {
    auto work = queue_.try_pop();
    if (work) (*work)();
    return work.has_value();
  }
  [[nodiscard]] bool empty() const { return queue_.size() == 0; }

private:
  bounded_queue<task> queue_{64};
};

// Each reading is one microsecond later than the one before.
class ticking_clock final : public clock_seam {
public:
  time_point now() const override { return time_point{now_ += std::chrono::microseconds{1}}; }
  timer_id call_after(duration, task) override { return 0; }
  void cancel(timer_id) override {}
  void advance(duration by) { now_ += by; }

private:
  mutable duration now_{};
};

// All ranks of one generation, in one thread. The last rank to arrive completes everybody's all-reduce.
class test_collective {
public:
  test_collective(std::uint32_t shards, std::uint32_t world, std::size_t elements)
      : test_collective{collective_shape{.world = world, .shards = shards, .elements = elements}} {}
  explicit test_collective(const collective_shape& shape)
      : sum_{shape}
      , elements_{shape.elements}
      , result_(shape.elements)
      , arrived_(shape.world)
      , left_(shape.world, sum_parts{shape.elements}) {
    const auto world = shape.world;
    const auto elements = shape.elements;
    const auto stride = (elements + 15) / 16 * 16;
    memory_ = touched_memory{sum_.slots() * stride * sizeof(float)};
    for (std::uint32_t slot = 0; slot < sum_.slots(); ++slot)
      slots_.push_back(memory_.as<float>().subspan(slot * stride, elements));
    taken_ = touched_memory{sum_.slots() * stride * sizeof(float)};
    for (std::uint32_t slot = 0; slot < sum_.slots(); ++slot)
      pointers_.push_back(taken_.as<float>().data() + slot * stride);
    if (shape.group_bytes > 0)
      groups_ = std::make_unique<group_table>(
          world, [](std::uint32_t, group_outcome outcome) { outcome.deliver(); });
    for (std::uint32_t rank = 0; rank < world; ++rank)
      ranks_.push_back(std::make_unique<member>(*this, rank));
  }
  [[nodiscard]] communicator& rank(std::uint32_t which) { return *ranks_[which]; }
  void abort() {
    aborted_ = true;
    for (auto& waiting : arrived_)
      if (waiting) std::exchange(waiting, {})(error{errc::aborted, "test"});
    if (groups_) groups_->abort();
  }
  void begin_generation() { numbered_ = 0; } // its sums are counted from 1 (CO-4)
  void skip_receipt() { ++numbered_; }       // as if a sum had been made without these ranks
  std::uint64_t completed{0};
  std::uint64_t parts{0};                                    // begun by any rank
  std::function<void(std::uint32_t, element_range)> on_part; // rank, part: as it is begun
  std::function<void()> before_sum;
  std::function<void(std::uint32_t)> on_group_call; // rank: as it calls
  std::function<void(std::span<float>)> corrupt;    // changes a sum before it is handed out

private:
  class member final : public communicator, private rank_group {
  public:
    member(test_collective& all, std::uint32_t rank)
        : all_{all}
        , rank_{rank} {}
    rank_group* group() override { return all_.groups_ ? this : nullptr; }
    std::span<float> contribution(std::size_t index) override {
      return all_.slots_[all_.sum_.first_slot(rank_) + index];
    }
    void begin(element_range part, part_done) override { all_.take_part(rank_, part); }
    void all_reduce(all_reduce_done done) override { all_.arrive(rank_, std::move(done)); }
    void abort() noexcept override { all_.abort(); }

  private:
    std::uint32_t rank() const override { return rank_; }
    std::uint32_t world() const override { return all_.groups_->world(); }
    void start(const group_operation& what, group_done done) override {
      if (all_.on_group_call) all_.on_group_call(rank_);
      all_.groups_->start(rank_, what, std::move(done));
    }
    expected<std::unique_ptr<rank_group>> split(std::span<const std::uint32_t>) override {
      return error{errc::bad_argument, "test: groups are not split"};
    }
    test_collective& all_;
    std::uint32_t rank_;
  };

  // What is begun is summed as it is now, whatever is written later (SH-4).
  void take_part(std::uint32_t rank, element_range part) {
    ++parts;
    if (on_part) on_part(rank, part);
    left_[rank].begin(part);
    take(rank, part);
  }
  void take(std::uint32_t rank, element_range part) {
    for (std::uint32_t slot = sum_.first_slot(rank); slot < sum_.first_slot(rank) + sum_.slots_of(rank);
         ++slot) {
      const auto stride = (elements_ + 15) / 16 * 16;
      const auto from = slots_[slot].subspan(part.begin, part.size());
      std::ranges::copy(from, taken_.as<float>().subspan(slot * stride + part.begin, part.size()).begin());
    }
  }

  void arrive(std::uint32_t rank, all_reduce_done done) {
    if (aborted_) return done(error{errc::aborted, "test"});
    arrived_[rank] = std::move(done);
    if (!std::ranges::all_of(arrived_, [](const auto& waiting) { return static_cast<bool>(waiting); }))
      return;
    if (before_sum) before_sum();
    for (std::uint32_t each = 0; each < ranks_.size(); ++each)
      for (const auto rest : left_[each].take_rest())
        take(each, rest);
    sum_.evaluate(pointers_, 0, elements_, result_.data());
    ++completed;
    ++numbered_;
    if (corrupt) corrupt(result_);
    for (auto& waiting : arrived_)
      if (waiting) std::exchange(waiting, {})(reduction{result_, numbered_}); // none: aborted meanwhile
  }

  canonical_sum sum_;
  std::size_t elements_;
  touched_memory memory_, taken_;
  std::vector<std::span<float>> slots_;
  std::vector<const float*> pointers_;
  std::vector<float> result_;
  std::vector<all_reduce_done> arrived_;
  std::vector<sum_parts> left_; // by rank
  std::unique_ptr<group_table> groups_;
  std::vector<std::unique_ptr<member>> ranks_;
  std::uint64_t numbered_{0};
  bool aborted_{false};
};

// Random samples as a pure function of the running sample number; labels follow from the inputs.
inline void fill_batch(batch& into, std::uint64_t global_batch) {
  const auto samples = std::size_t{into.shard_count} * into.samples_per_shard;
  into.first_sample = into.step.value() * global_batch + into.first_shard * into.samples_per_shard;
  const auto bytes = into.memory.bytes();
  auto* inputs = reinterpret_cast<float*>(bytes.data());
  auto* labels = reinterpret_cast<std::uint8_t*>(bytes.data() + batch::label_offset(samples, into.features));
  const counter_rng rng{11, 12};
  for (std::size_t i = 0; i < samples; ++i) {
    float sum = 0;
    for (std::size_t f = 0; f < into.features; ++f) {
      const auto value = rng.uniform((into.first_sample + i) * into.features + f);
      inputs[i * into.features + f] = value;
      sum += f % 2 == 0 ? value : -value;
    }
    labels[i] = sum > 0 ? 1 : 0;
  }
}

// A batch stream with one buffer, refilled whenever it comes back and there is credit.
class test_stream {
public:
  test_stream(const step_settings& settings, std::uint32_t features, generation_id generation,
              std::uint32_t rank, std::uint32_t world, std::uint64_t first_batch)
      : settings_{settings}
      , generation_{generation}
      , range_{shard_range(settings.shards, world, rank)}
      , next_{first_batch}
      , stream_{1, features} {
    stream_.reserve(std::max<std::size_t>(1, range_.count * per_shard()));
    stream_.attach(this, [this] {
      ++releases;
      refill();
    });
    refill();
  }
  [[nodiscard]] batch_stream& get() { return stream_; }
  void limit(std::uint64_t batches) { last_ = batches; }
  // Up to global batch `last`, exclusive.
  void feed_until(std::uint64_t last) {
    last_ = last;
    refill();
  }
  [[nodiscard]] std::size_t outstanding() const { return 1 - stream_.credit_left() - stream_.ready(); }

  std::uint64_t releases{0};

private:
  [[nodiscard]] std::uint32_t per_shard() const { return settings_.global_batch / settings_.shards; }
  void refill() {
    if (next_ >= last_) return;
    auto memory = stream_.try_lend();
    if (!memory) return;
    batch made;
    made.generation = generation_;
    made.step = step_id{next_++};
    made.first_shard = range_.first;
    made.shard_count = range_.count;
    made.samples_per_shard = per_shard();
    made.features = stream_.features();
    made.memory = std::move(memory);
    fill_batch(made, settings_.global_batch);
    stream_.publish(std::move(made));
  }

  step_settings settings_;
  generation_id generation_;
  shard_interval range_;
  std::uint64_t next_;
  std::uint64_t last_{~std::uint64_t{0}};
  batch_stream stream_;
};

// Logistic regression on two classes with a parameter that is no multiple of 16 long: a model in 20 lines.
class tiny_model final : public model {
public:
  static constexpr std::size_t features = 5;
  explicit tiny_model(model_context& context)
      : weights_{context.declare("weights", {features}, context.uniform("weights", 0.5F))}
      , bias_{context.declare("bias", {1}, model_context::zeros())} {}

  shard_result train_shard(const batch_view& shard, const parameter_view& parameters,
                           gradient_sink& gradients) override;
  evaluation evaluate(const batch_view& batch, const parameter_view& parameters) override;

  std::uint64_t shards_computed{0};
  std::function<void()> on_shard; // called before a shard is computed
  bool forget_bias{false};        // hands over one gradient too few

private:
  [[nodiscard]] float predict(const batch_view& batch, std::size_t sample,
                              const parameter_view& parameters) const;
  parameter weights_;
  parameter bias_;
};

class recording_observer final : public step_observer {
public:
  void before_step(step_id computing) override {
    started = computing;
    if (on_before) on_before(computing);
  }
  void on_step(const observation& what) override {
    if (steps.size() < steps.capacity()) steps.push_back(what);
    ++applied;
    if (on_applied) on_applied(what);
  }
  bool snapshot_due(step_id step) override {
    return snapshot_every != 0 && step.value() % snapshot_every == 0;
  }
  bool try_snapshot(step_id step) override {
    ++snapshot_tries;
    if (slots == 0) return false;
    --slots;
    snapshots.push_back(step);
    return true;
  }
  void on_snapshot(step_id, duration stall) override { last_stall = stall; }
  void on_refused(step_id step, bool ours) override {
    refused = step;
    refused_ours = ours;
  }
  void on_ended(step_id step, run_end how) noexcept override {
    ++answers;
    ended = how;
    ended_at = step;
    if (on_answer) on_answer();
  }
  void on_failed(step_id step, const error& cause) noexcept override {
    ++answers;
    failure = cause;
    ended_at = step;
    if (on_answer) on_answer();
  }

  std::vector<observation> steps = reserved();
  std::uint64_t applied{0};
  step_id started;
  std::function<void(step_id)> on_before;
  std::function<void(const observation&)> on_applied;
  std::function<void()> on_answer;
  std::uint64_t snapshot_every{0};
  std::uint64_t slots{0};
  std::uint64_t snapshot_tries{0};
  std::vector<step_id> snapshots;
  duration last_stall{};
  int answers{0};
  std::optional<run_end> ended;
  std::optional<error> failure;
  step_id ended_at;
  step_id refused;
  bool refused_ours{false};

private:
  static std::vector<observation> reserved() {
    std::vector<observation> list;
    list.reserve(4096);
    return list;
  }
};

// One rank: a model, its state, and the engine that trains it.
struct worker {
  worker(const step_settings& settings, const optimizer_settings& optimizer, std::uint64_t seed = 7)
      : rule{std::move(make_optimizer(optimizer).value())}
      , store{seed}
      , kernels{store}
      , engine{(freeze_state(store, *rule, settings.shards, settings.top_k),
                step_context{kernels, store, *rule, queue, clock, box, observer}),
               settings} {}

  void begin(test_collective& all, std::uint32_t rank, std::uint32_t world, std::uint64_t first,
             std::uint64_t last, generation_id generation = generation_id{1}) {
    const auto& settings = engine.settings();
    all.begin_generation();
    stream = std::make_unique<test_stream>(settings, tiny_model::features, generation, rank, world,
                                           first * settings.accumulate);
    engine.begin({.generation = generation,
                  .reduce = &all.rank(rank),
                  .batches = &stream->get(),
                  .rank = rank,
                  .world = world,
                  .first_step = step_id{first},
                  .last_step = step_id{last}});
  }

  std::unique_ptr<const optimizer> rule;
  parameter_store store;
  tiny_model kernels;
  manual_executor queue;
  ticking_clock clock;
  black_box box;
  recording_observer observer;
  std::unique_ptr<test_stream> stream;
  step_engine engine;
};

// Runs queued tasks, rank by rank, until nothing is left to do.
inline void drain(std::span<const std::unique_ptr<worker>> workers) {
  for (bool busy = true; busy;) {
    busy = false;
    for (const auto& one : workers)
      busy = one->queue.run_one() || busy;
  }
}
inline void drain(worker& one) {
  while (one.queue.run_one()) {
  }
}

} // namespace troupe::testing
