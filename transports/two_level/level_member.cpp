#include "transports/two_level/level_member.hpp"

#include <algorithm>

#include "runtime/base/invariant.hpp"
#include "runtime/base/probe.hpp"
#include "transports/two_level/level_hub.hpp"

namespace troupe {
namespace {

constexpr std::size_t line_elements = 64 / sizeof(float);

std::size_t stride_of(const collective_shape& shape) {
  return (shape.elements + line_elements - 1) / line_elements * line_elements;
}

std::size_t slots_of(const collective_shape& shape, std::uint32_t rank) {
  const auto range = shard_range(shape.shards, shape.world, rank);
  return owned_nodes(shape.shards, range.first, range.count).size();
}

// A host's first rank and the others of its host; the first ranks of all hosts.
std::vector<std::uint32_t> neighbours_of(const level_plan& plan, std::uint32_t rank) {
  const auto& own = plan.hosts[plan.host_of(rank)];
  if (rank != own.first) return {own.first};
  std::vector<std::uint32_t> all;
  for (std::uint32_t i = 1; i < own.ranks; ++i)
    all.push_back(own.first + i);
  for (const auto& other : plan.hosts)
    if (other.first != rank) all.push_back(other.first);
  return all;
}

} // namespace

level_member::level_member(std::shared_ptr<level_hub> hub, collective_shape shape, level_plan plan,
                           rank_id rank)
    : hub_{std::move(hub)}
    , shape_{std::move(shape)}
    , plan_{std::move(plan)}
    , rank_{rank.value()}
    , host_{plan_.host_of(rank_)}
    , slots_{slots_of(shape_, rank_)}
    , neighbours_{neighbours_of(plan_, rank_)}
    , ended_by_{rank_} {
  if (!alone()) sum_ = touched_memory{shape_.elements * sizeof(float)};
}

// --- the communicator's side ----------------------------------------------------------------------------

std::span<float> level_member::contribution(std::size_t index) {
  const std::lock_guard lock{mutex_};
  if (alone()) return between_->contribution(index);
  if (inside_ != nullptr && !is_early_) return inside_->contribution(index);
  invariant(index < slots_, "CP-2: a rank contributes one sum for each node it owns");
  is_early_ = true;
  if (early_.bytes().empty()) early_ = touched_memory{slots_ * stride_of(shape_) * sizeof(float)};
  return early_.as<float>().subspan(index * stride_of(shape_), shape_.elements);
}

void level_member::begin(element_range part, part_done done) {
  if (alone() || stopped()) return; // between hosts a sum is begun whole, by all
  {
    const std::lock_guard lock{mutex_};
    is_early_ = is_early_ || inside_ == nullptr;
    if (is_early_) return void(early_parts_.push_back({part, std::move(done)}));
  }
  inside_->begin(part, std::move(done));
}

void level_member::all_reduce(all_reduce_done done) {
  called_.fetch_add(1);
  if (ended()) return done(end_error());
  done_ = std::move(done);
  if (alone())
    return between_->all_reduce(
        [self = shared_from_this()](expected<reduction> sum) { self->on_between(std::move(sum)); });
  if (inside_ == nullptr) {
    called_early_ = true; // `end` answers after this, or was seen above
    return;
  }
  sum_inside();
}

void level_member::sum_inside() {
  if (is_early_) {
    probe<"level_member.written_early">::hit();
    for (std::size_t i = 0; i < slots_ && !early_.bytes().empty(); ++i)
      std::ranges::copy(early_.as<float>().subspan(i * stride_of(shape_), shape_.elements),
                        inside_->contribution(i).begin());
    for (auto& early : std::exchange(early_parts_, {}))
      inside_->begin(early.part, std::move(early.done));
    const std::lock_guard lock{mutex_};
    is_early_ = false;
    early_ = {};
  }
  inside_->all_reduce(
      [self = shared_from_this()](expected<reduction> sum) { self->on_inside(std::move(sum)); });
}

void level_member::on_inside(expected<reduction> sum) {
  if (retired_) return;
  if (!sum) return fail(sum.failure());
  if (!leads()) return hand_on({});
  for (std::uint32_t node = 0; node < host().nodes; ++node)
    std::ranges::copy(sum->at(node), between_->contribution(node).begin());
  between_->all_reduce(
      [self = shared_from_this()](expected<reduction> all) { self->on_between(std::move(all)); });
}

void level_member::on_between(expected<reduction> sum) {
  if (retired_) return;
  if (!sum) return fail(sum.failure());
  if (!alone()) return hand_on(sum->sum);
  answer(reduction{sum->sum, ++sums_});
}

void level_member::hand_on(std::span<const float> sum) {
  inside_->group()->start({.call = group_call::broadcast,
                           .elements = shape_.elements,
                           .peer = 0,
                           .in = std::as_bytes(sum),
                           .out = sum_.bytes()},
                          [self = shared_from_this()](const expected<void>& handed) {
                            if (self->retired_) return;
                            if (!handed) return self->fail(handed.failure());
                            const auto all = self->sum_.as<float>().first(self->shape_.elements);
                            self->answer(reduction{all, ++self->sums_});
                          });
}

void level_member::answer(expected<reduction> result) {
  called_early_ = false;
  if (done_) std::exchange(done_, {})(std::move(result));
}

// LM-2: one level has ended. Whoever aborted it says so to all.
void level_member::fail(const error& why) {
  if (why.code == errc::aborted) {
    stop();
  } else {
    failure_ = why;
    abort();
  }
  answer(end_error());
}

error level_member::end_error() const {
  return failure_.value_or(error{errc::aborted, "generation " + to_string(shape_.generation) + " was ended"});
}

void level_member::abort() noexcept {
  end({rank_, called_.load()});
}

void level_member::end(cause first) {
  stop();
  if (told_.exchange(true)) return;
  ended_at_.store(first.called);
  ended_by_.store(first.rank);
  hub_->loop().post([self = shared_from_this()] { self->hub_->tell_end(*self); });
}

void level_member::stop() {
  if (ended_.exchange(true)) return;
  {
    const std::lock_guard lock{mutex_};
    if (inside_ != nullptr) inside_->abort();
    if (between_ != nullptr) between_->abort();
  }
  hub_->device().post([self = shared_from_this()] {
    if (self->called_early_) self->answer(self->end_error());
  });
}

void level_member::retire() {
  retired_ = true;
  ended_.store(true);
  done_ = {};
  early_parts_.clear();
  sum_ = {};
  std::unique_ptr<communicator> inside;
  std::unique_ptr<communicator> between;
  {
    const std::lock_guard lock{mutex_};
    inside = std::move(inside_);
    between = std::move(between_);
    early_ = {};
  }
  hub_->loop().post([self = shared_from_this()] { self->hub_->leave(self); });
}

// Of this host's others: what the level inside has seen, in meetings, told as sums. Of another host: what its
// first rank has called for, as far as it was heard here.
std::vector<std::uint64_t> level_member::arrivals() const {
  std::vector<std::uint64_t> all(shape_.world, 0);
  const std::lock_guard lock{mutex_};
  const auto called = called_.load();
  const auto first = ended_by();
  all[first.rank] = first.called;
  all[rank_] = called;
  if (inside_ != nullptr) {
    const auto met = inside_->arrivals();
    const auto own = rank_ - host().first;
    for (std::uint32_t i = 0; i < met.size(); ++i) {
      const bool behind = met[i] < met[own];
      all[host().first + i] = called + (met[i] > met[own] ? 1 : 0) - (behind && called > 0 ? 1 : 0);
    }
  }
  if (between_ == nullptr) return all;
  const auto heard = between_->arrivals();
  for (std::uint32_t i = 0; i < heard.size(); ++i)
    if (i != host_) all[plan_.hosts[i].first] = std::max(all[plan_.hosts[i].first], heard[i]);
  return all;
}

// --- making it ------------------------------------------------------------------------------------------

void level_member::take_inside(expected<std::unique_ptr<communicator>> made) {
  if (retired_) return;
  if (!made) return fail(made.failure());
  {
    const std::lock_guard lock{mutex_};
    inside_ = std::move(*made);
    if (ended()) inside_->abort();
  }
  if (called_early_ && !ended()) {
    called_early_ = false;
    sum_inside();
  }
}

} // namespace troupe
