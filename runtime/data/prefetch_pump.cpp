#include "runtime/data/prefetch_pump.hpp"

#include <atomic>
#include <exception>
#include <limits>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "runtime/base/invariant.hpp"
#include "runtime/base/limits.hpp"
#include "runtime/base/planted_bug.hpp"
#include "runtime/base/probe.hpp"
#include "runtime/data/sample_order.hpp"

namespace troupe {

expected<void> check(const batch_assignment& what) {
  const auto refuse = [](const std::string& text) {
    return error{errc::bad_argument, "batch assignment: " + text};
  };
  if (what.global_batch < 1 || what.global_batch > limits::global_batch_max)
    return refuse("global batch " + std::to_string(what.global_batch) + ", accepted are 1 to " +
                  std::to_string(limits::global_batch_max));
  if (what.shards < 1 || what.shards > limits::shards_max || what.global_batch % what.shards != 0)
    return refuse(std::to_string(what.shards) + " shards of a global batch of " +
                  std::to_string(what.global_batch) + ", accepted are its divisors up to " +
                  std::to_string(limits::shards_max));
  if (what.shard_count < 1 || what.first_shard >= what.shards ||
      what.shard_count > what.shards - what.first_shard)
    return refuse(std::to_string(what.shard_count) + " shards from shard " +
                  std::to_string(what.first_shard) + " of " + std::to_string(what.shards));
  constexpr auto running_max = std::numeric_limits<std::uint64_t>::max();
  if (what.first_step > what.last_step || what.last_step.value() > running_max / what.global_batch)
    return refuse("steps " + to_string(what.first_step) + " to " + to_string(what.last_step));
  return {};
}

class prefetch_pump::core : public std::enable_shared_from_this<core> {
public:
  core(executor& reader, std::shared_ptr<const dataset> data, std::shared_ptr<batch_stream> into,
       prefetch_hooks hooks)
      : reader_{reader}
      , data_{std::move(data)}
      , stream_{std::move(into)}
      , hooks_{std::move(hooks)} {
    invariant(data_->features() == stream_->features(),
              "prefetch pump: the stream has the dataset's features");
  }

  // --- control, any thread ---
  void control(const std::optional<batch_assignment>& what) {
    const std::uint64_t version = ++wanted_version_;
    // Posted in two forms, so that the larger one fits a task without allocating.
    if (what)
      reader_.post([self = shared_from_this(), next = *what, version] { self->begin(next, version); });
    else
      reader_.post([self = shared_from_this(), version] { self->end(version); });
  }
  void close() {
    ++wanted_version_;
    stream_->detach(this);
    const std::lock_guard lock{failed_mutex_};
    closed_ = true;
  }
  // At most one pump task waits, however often this is called.
  void wake() {
    if (!posted_.exchange(true)) reader_.post([self = shared_from_this()] { self->pump(); });
  }

private:
  // --- the reader's thread ---
  void begin(const batch_assignment& next, std::uint64_t version) {
    if (closed_) return;
    active_ = false;
    stream_->clear();
    if (probe<"prefetcher.assignment_overtaken">::when(version != wanted_version_)) return;
    version_ = version;
    assignment_ = next;
    step_ = next.first_step;
    guarded([&] {
      order_.emplace(data_->samples(), next.seed);
      stream_->reserve(std::size_t{next.shard_count} * next.samples_per_shard());
      stream_->attach(this, [weak = weak_from_this()] {
        if (const auto self = weak.lock()) self->wake();
      });
      active_ = true;
      return expected<void>{};
    });
    if (active_) wake();
  }

  void end(std::uint64_t version) {
    if (closed_) return;
    active_ = false;
    if (version == wanted_version_) stream_->clear();
  }

  [[nodiscard]] bool superseded() const {
    return version_ != wanted_version_.load(std::memory_order_relaxed);
  }

  // One batch, then the executor's turn again: control calls and other readers get in between.
  void pump() {
    posted_ = false; // before looking for credit: a buffer that comes back from here on posts again
    if (!active_ || superseded() || step_ == assignment_.last_step) return;
    batch next;
    next.memory = stream_->try_lend();
    if (!next.memory) return; // the next returned buffer wakes the pump (PF-1)
    bool complete = false;
    guarded([&]() -> expected<void> {
      if (hooks_.before_read) hooks_.before_read(step_);
      auto filled = fill(next);
      complete = filled.has_value();
      return filled;
    });
    if (!complete || superseded()) return;
    step_ = step_.next();
    stream_->publish(std::move(next));
    if (step_ != assignment_.last_step && stream_->credit_left() > 0) wake();
  }

  expected<void> fill(batch& into) {
    const batch_assignment& a = assignment_;
    const std::size_t features = stream_->features();
    const std::size_t samples = std::size_t{a.shard_count} * a.samples_per_shard();
    into.generation = a.generation;
    into.step = step_;
    into.first_shard = a.first_shard;
    into.shard_count = a.shard_count;
    into.samples_per_shard = a.samples_per_shard();
    into.features = stream_->features();
    into.first_sample = step_.value() * a.global_batch + std::uint64_t{a.first_shard} * a.samples_per_shard();
    if (TROUPE_PLANTED("prefetcher.cursor_off_by_one") && a.first_step != step_id{0}) ++into.first_sample;

    const auto bytes = into.memory.bytes();
    auto* inputs = reinterpret_cast<float*>(bytes.data());
    auto* labels = reinterpret_cast<std::uint8_t*>(bytes.data() + batch::label_offset(samples, features));
    std::uint64_t index = order_->index_of(into.first_sample);
    for (std::size_t i = 0; i < samples; ++i) {
      if (superseded()) return {}; // half filled, and dropped by the caller
      const std::uint64_t current = index;
      if (i + 1 < samples) {
        index = order_->index_of(into.first_sample + i + 1);
        data_->expect(index);
      }
      if (auto read = data_->read_into(current, {inputs + i * features, features}); !read) return read;
      labels[i] = data_->label(current);
    }
    return {};
  }

  // The pump's edge: what is thrown behind it leaves as a value.
  template <class Work>
  void guarded(Work&& work) {
    try {
      if (const auto done = work(); !done) failed(done.failure());
    } catch (const std::exception& thrown) {
      failed({errc::actor_failed, thrown.what()});
    } catch (...) {
      failed({errc::actor_failed, "an exception without a text"});
    }
  }

  void failed(const error& cause) {
    active_ = false;
    if (superseded()) return;
    probe<"prefetcher.read_failed">::hit();
    const std::lock_guard lock{failed_mutex_};
    if (closed_ || !hooks_.on_failed) return;
    hooks_.on_failed(
        {assignment_.generation, step_, cause.at("prefetcher, reading step " + to_string(step_))});
  }

  executor& reader_;
  const std::shared_ptr<const dataset> data_;
  const std::shared_ptr<batch_stream> stream_;
  const prefetch_hooks hooks_;

  std::atomic<std::uint64_t> wanted_version_{0}; // counts control calls
  std::atomic<bool> posted_{false};
  std::atomic<bool> closed_{false};
  std::mutex failed_mutex_; // held while `on_failed` runs, so that `close` can wait for it (PF-5)

  // The reader's thread only.
  std::uint64_t version_{0};
  bool active_{false};
  batch_assignment assignment_;
  step_id step_; // to be read next
  std::optional<sample_order> order_;
};

prefetch_pump::prefetch_pump(executor& reader, std::shared_ptr<const dataset> data,
                             std::shared_ptr<batch_stream> into, prefetch_hooks hooks)
    : core_{std::make_shared<core>(reader, std::move(data), std::move(into), std::move(hooks))} {}

prefetch_pump::~prefetch_pump() {
  core_->close();
}

expected<void> prefetch_pump::start(const batch_assignment& what) {
  if (auto checked = check(what); !checked) return checked;
  core_->control(what);
  return {};
}

void prefetch_pump::stop() {
  core_->control(std::nullopt);
}

} // namespace troupe
