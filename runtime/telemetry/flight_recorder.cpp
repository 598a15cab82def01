#include "runtime/telemetry/flight_recorder.hpp"

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

#include "runtime/base/invariant.hpp"

namespace troupe {
namespace {

constexpr std::size_t calls_under_way_at_first = 16;
constexpr std::uint32_t splits_max = 256; // of one group, with a number that no other one has

call_outcome outcome_of(errc code) {
  return code == errc::aborted ? call_outcome::aborted : call_outcome::failed;
}

} // namespace

// A group's number says how it was made, so that it is the same at all members: the i-th split of group g has
// number g x splits_max + i, whoever is in it.
class flight_recorder::recorded_group final : public rank_group {
public:
  recorded_group(flight_recorder& owner, generation_id generation, std::uint32_t number, rank_group& inner,
                 std::vector<std::uint32_t> ranks, std::unique_ptr<rank_group> owned = {})
      : owner_{owner}
      , generation_{generation}
      , owned_{std::move(owned)}
      , inner_{inner}
      , ranks_{std::move(ranks)}
      , sent_(ranks_.size())
      , received_(ranks_.size())
      , pending_(calls_under_way_at_first)
      , number_{number} {
    owner_.add_group({number_, ranks_});
  }

  [[nodiscard]] std::uint32_t rank() const override { return inner_.rank(); }
  [[nodiscard]] std::uint32_t world() const override { return inner_.world(); }

  void start(const group_operation& what, group_done done) override {
    if (size_ == pending_.size()) grow();
    auto& place = pending_[(head_ + size_) % pending_.size()];
    place.record = owner_.begin(generation_, number_, describe(what));
    place.count = &count_of(what);
    place.record.sequence = ++*place.count;
    if (what.peer < ranks_.size()) place.record.peer = ranks_[what.peer];
    place.done = std::move(done);
    if (size_ == 0) place.record.started_ns = place.record.created_ns;
    owner_.ring_.add(place.record); // FL-1
    ++size_;
    inner_.start(what, [this](expected<void> result) {
      const bool refused = !result && result.failure().code == errc::no_credit;
      refused ? on_refused(std::move(result)) : on_done(std::move(result));
    });
  }

  [[nodiscard]] expected<std::unique_ptr<rank_group>> split(std::span<const std::uint32_t> ranks) override {
    auto made = inner_.split(ranks);
    if (!made) return made.failure();
    ++splits_;
    if (*made == nullptr) return std::unique_ptr<rank_group>{};
    std::vector<std::uint32_t> members;
    for (const auto one : ranks)
      members.push_back(one < ranks_.size() ? ranks_[one] : one);
    auto& inside = **made;
    return std::unique_ptr<rank_group>{std::make_unique<recorded_group>(
        owner_, generation_, number_ * splits_max + splits_, inside, std::move(members), std::move(*made))};
  }

private:
  struct pending_call {
    flight_record record;
    group_done done;
    std::uint64_t* count{nullptr}; // of calls of its kind
  };

  std::uint64_t& count_of(const group_operation& what) {
    const bool known = what.peer < ranks_.size();
    if (what.call == group_call::send && known) return sent_[what.peer];
    if (what.call == group_call::receive && known) return received_[what.peer];
    return collectives_;
  }

  // Calls complete in order (GR-1). The next one has nothing before it any more.
  void on_done(expected<void> result) {
    invariant(size_ > 0, "GR-1: every done is called exactly once");
    auto& first = pending_[head_];
    owner_.finish(first.record, result ? call_outcome::done : outcome_of(result.failure().code));
    auto done = std::move(first.done);
    head_ = (head_ + 1) % pending_.size();
    if (--size_ > 0) owner_.start(pending_[head_].record);
    done(std::move(result));
  }

  // The newest one, while it is made (GR-6). It counts as not called: the next one gets its number.
  void on_refused(expected<void> result) {
    auto& newest = pending_[(head_ + --size_) % pending_.size()];
    --*newest.count;
    newest.record.sequence = 0;
    owner_.finish(newest.record, call_outcome::failed);
    auto done = std::move(newest.done);
    done(std::move(result));
  }

  void grow() {
    std::vector<pending_call> larger(pending_.size() * 2);
    for (std::size_t i = 0; i < size_; ++i)
      larger[i] = std::move(pending_[(head_ + i) % pending_.size()]);
    pending_ = std::move(larger);
    head_ = 0;
  }

  flight_recorder& owner_;
  generation_id generation_;
  std::unique_ptr<rank_group> owned_; // none: the communicator's own
  rank_group& inner_;
  std::vector<std::uint32_t> ranks_; // of the generation
  std::vector<std::uint64_t> sent_, received_;
  std::vector<pending_call> pending_; // a ring
  std::size_t head_{0};
  std::size_t size_{0};
  std::uint64_t collectives_{0};
  std::uint32_t number_;
  std::uint32_t splits_{0};
};

class flight_recorder::recorded_communicator final : public communicator {
public:
  recorded_communicator(flight_recorder& owner, std::unique_ptr<communicator> inner,
                        const collective_shape& shape)
      : owner_{owner}
      , generation_{shape.generation}
      , elements_{shape.elements}
      , inner_{std::move(inner)} {
    std::vector<std::uint32_t> everybody(shape.world);
    std::iota(everybody.begin(), everybody.end(), 0U);
    if (auto* const general = inner_->group(); general != nullptr)
      group_ = std::make_unique<recorded_group>(owner_, generation_, 1, *general, everybody);
    everybody_ = std::move(everybody);
  }

  [[nodiscard]] std::span<float> contribution(std::size_t index) override {
    return inner_->contribution(index);
  }
  void begin(element_range part, part_done done) override {
    if (begun_ == parts_.size()) return inner_->begin(part, std::move(done));
    if (!everybody_.empty()) owner_.add_group({flight_parts_group, std::exchange(everybody_, {})});
    auto& place = parts_[begun_++];
    place.finished_ns.store(0, std::memory_order_relaxed);
    place.record = owner_.begin(generation_, flight_parts_group,
                                {.call = collective_call::sum, .elements = part.size()});
    place.record.sequence = ++begun_ever_;
    owner_.ring_.add(place.record); // FL-1
    place.done = std::move(done);
    inner_->begin(part, [this, &place] {
      place.finished_ns.store(to_ns(owner_.clock_.now()));
      if (place.done) place.done();
    });
  }
  void all_reduce(all_reduce_done done) override {
    record_ = owner_.begin(generation_, 0, {.call = collective_call::sum, .elements = elements_});
    record_.sequence = ++sums_;
    record_.started_ns = record_.created_ns;
    owner_.ring_.add(record_); // FL-1
    waiting_ = std::move(done);
    inner_->all_reduce([this](expected<reduction> result) {
      owner_.finish(record_, outcome_of_sum(result));
      finish_parts();
      std::exchange(waiting_, {})(std::move(result));
    });
  }
  void abort() noexcept override { inner_->abort(); }
  [[nodiscard]] std::vector<std::uint64_t> arrivals() const override { return inner_->arrivals(); }
  [[nodiscard]] rank_group* group() override { return group_.get(); }

private:
  struct begun_part {
    flight_record record;
    std::atomic<std::int64_t> finished_ns{0}; // told on any thread; the ring is written on the device
    part_done done;
  };
  // Parts are summed one after the other. One that did not end by itself ended with its sum.
  void finish_parts() {
    std::int64_t before = 0;
    for (auto& [record, finished, done] : std::span{parts_}.first(std::exchange(begun_, 0))) {
      const auto by_itself = finished.load();
      record.started_ns = std::max(record.created_ns, before);
      record.finished_ns = before = by_itself != 0 ? by_itself : record_.finished_ns;
      record.outcome = by_itself != 0 ? call_outcome::done : record_.outcome;
      owner_.ring_.update(record);
    }
  }

  [[nodiscard]] call_outcome outcome_of_sum(const expected<reduction>& result) const {
    if (!result) return outcome_of(result.failure().code);
    return result->number == sums_ ? call_outcome::done : call_outcome::left_out;
  }

  flight_recorder& owner_;
  generation_id generation_;
  std::uint64_t elements_;
  std::array<begun_part, flight_parts_max> parts_; // of the coming sum; outlive the communicator that tells
  std::unique_ptr<communicator> inner_;
  std::unique_ptr<recorded_group> group_;
  flight_record record_;
  all_reduce_done waiting_;
  std::uint64_t sums_{0};
  std::size_t begun_{0};
  std::uint64_t begun_ever_{0};
  std::vector<std::uint32_t> everybody_; // empty once told
};

flight_recorder::flight_recorder(flight_ring& ring, const std::atomic<std::uint64_t>& step,
                                 const clock_seam& clock)
    : ring_{ring}
    , step_{step}
    , clock_{clock} {}

std::unique_ptr<communicator> flight_recorder::watch(std::unique_ptr<communicator> inner,
                                                     const collective_shape& shape) {
  {
    const std::lock_guard lock{mutex_};
    groups_.clear();
  }
  return std::make_unique<recorded_communicator>(*this, std::move(inner), shape);
}

std::vector<flight_group> flight_recorder::groups() const {
  const std::lock_guard lock{mutex_};
  return groups_;
}

void flight_recorder::add_group(flight_group made) {
  const std::lock_guard lock{mutex_};
  if (groups_.size() < flight_groups_max) groups_.push_back(std::move(made));
}

flight_record flight_recorder::begin(generation_id generation, std::uint32_t group,
                                     const call_descriptor& what) const {
  return {.generation = generation.value(),
          .step = step_.load(std::memory_order_relaxed),
          .elements = what.elements,
          .created_ns = to_ns(clock_.now()),
          .group = group,
          .peer = what.peer,
          .call = what.call,
          .type = what.type,
          .op = what.op};
}

void flight_recorder::start(flight_record& what) const {
  what.started_ns = to_ns(clock_.now());
  ring_.update(what);
}

void flight_recorder::finish(flight_record& what, call_outcome outcome) const {
  what.finished_ns = to_ns(clock_.now());
  what.outcome = outcome;
  ring_.update(what);
}

} // namespace troupe
