#include "transports/shm/shm_communicator.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "runtime/base/invariant.hpp"
#include "runtime/policy/line_slice.hpp"
#include "transports/shm/limits.hpp"
#include "transports/shm/shm_group.hpp"

namespace troupe {

namespace {} // namespace

shm_communicator::shm_communicator(std::shared_ptr<segment> memory, const collective_shape& shape,
                                   rank_id rank, wait_tuning tuning, executor* lane)
    : memory_{std::move(memory)}
    , shape_{shape}
    , rank_{rank.value()}
    , plan_{shape}
    , meeting_{memory_->header().words, memory_->lines(), rank_, tuning}
    , stores_{shape.elements * sizeof(float) >= limits::shm_streamed_bytes_min ? store_kind::streamed
                                                                               : store_kind::cached}
    , parts_{shape.elements}
    , lane_{lane} {
  const bool exchanged = memory_->layout().exchanged;
  for (std::uint32_t number = 0; number < plan_.slots(); ++number) {
    inputs_[0].push_back(exchanged ? exchange_slot(0, number) : slot(number));
    inputs_[1].push_back(exchanged ? exchange_slot(1, number) : slot(number));
  }
  if (exchanged) private_sum_.resize(plan_.sums() * stride());
}

expected<std::unique_ptr<communicator>> shm_communicator::make(std::shared_ptr<segment> memory,
                                                               const collective_shape& shape, rank_id rank,
                                                               wait_tuning tuning, executor* lane) {
  if (rank.value() >= shape.world)
    return error{errc::bad_argument,
                 "rank " + to_string(rank) + " is not in a world of " + std::to_string(shape.world)};
  auto& claimed = memory->lines()[rank.value()].claimed;
  if (claimed.exchange(1) != 0)
    return error{errc::bad_argument, "rank " + to_string(rank) + " of generation " +
                                         to_string(shape.generation) + " is already connected"};
  std::unique_ptr<shm_communicator> member{
      new shm_communicator{std::move(memory), shape, rank, tuning, lane}};
  if (member->meeting_.aborted()) return member->ended(meeting::outcome::aborted);
  auto ready = member->touch();
  if (ready && shape.group_bytes > 0) ready = member->join_group(tuning);
  if (!ready) {
    claimed.store(0);
    return ready.failure();
  }
  return std::unique_ptr<communicator>{std::move(member)};
}

shm_communicator::~shm_communicator() {
  if (!lane_.busy()) return;
  memory_->abort();
  lane_.drain();
}

// Own memory first: ranks that connect together then allocate disjoint pages. The rest is mapped here too,
// so that no step pays for it, however its sum is cut into parts.
expected<void> shm_communicator::touch() const {
  const auto& layout = memory_->layout();
  const auto own_bytes = plan_.slots_of(rank_) * layout.stride;
  const auto own_at = layout.slots_at + plan_.first_slot(rank_) * layout.stride;
  if (auto touched = memory_->touch(own_at, own_bytes); !touched) return touched;
  if (shape_.world == 1) return {};
  if (layout.exchanged) return memory_->touch(layout.result_at, layout.bytes - layout.result_at);
  const auto slice = slice_of({0, shape_.elements});
  const auto slice_at = slice.begin * sizeof(float);
  const auto slice_bytes = slice.size() * sizeof(float);
  for (std::uint32_t i = 0; i < layout.sums; ++i)
    if (auto touched = memory_->touch(layout.result_at + i * layout.stride + slice_at, slice_bytes); !touched)
      return touched;
  if (auto touched = memory_->touch(layout.slots_at, plan_.slots() * layout.stride); !touched) return touched;
  return memory_->touch(layout.result_at, layout.sums * layout.stride);
}

expected<void> shm_communicator::join_group(wait_tuning tuning) {
  auto made = shm_group::make(
      memory_,
      {.generation = shape_.generation, .group = 0, .world = shape_.world, .rank = rank_, .tuning = tuning});
  if (!made) return made.failure();
  group_ = std::move(*made);
  return {};
}

std::span<float> shm_communicator::contribution(std::size_t index) {
  invariant(index < plan_.slots_of(rank_), "CP-2: a rank contributes one sum for each node it owns");
  return {slot(plan_.first_slot(rank_) + static_cast<std::uint32_t>(index)), shape_.elements};
}

void shm_communicator::all_reduce(all_reduce_done done) {
  const auto result = sum();
  if (!result) return done(result.failure());
  done(reduction{*result, ++sums_, stride()});
}

expected<std::span<const float>> shm_communicator::sum() {
  if (shape_.world == 1) return sum_alone();
  return memory_->layout().exchanged ? sum_exchanged() : sum_in_slices();
}

// One member owns the whole of each sum: its contributions are they.
expected<std::span<const float>> shm_communicator::sum_alone() {
  if (meeting_.aborted()) return ended(meeting::outcome::aborted);
  meeting_.note_arrival();
  return std::span<const float>{slot(0), shape_.elements};
}

expected<std::span<const float>> shm_communicator::sum_exchanged() {
  const auto set = std::exchange(set_, 1 - set_);
  const auto first = plan_.first_slot(rank_);
  const auto bytes = plan_.slots_of(rank_) * memory_->layout().stride;
  if (bytes > 0) std::memcpy(exchange_slot(set, first), slot(first), bytes);
  if (const auto met = meeting_.meet(); met != meeting::outcome::complete) return ended(met);
  plan_.evaluate(inputs_[set], 0, shape_.elements, private_sum_.data(), store_kind::cached, 0, stride());
  return std::span<const float>{private_sum_}.first(shape_.elements);
}

expected<std::span<const float>> shm_communicator::sum_in_slices() {
  lane_.drain(); // SC-3
  add_up(parts_.take_rest());
  if (met_ != meeting::outcome::complete) return ended(met_);
  return std::span<const float>{memory_->at(memory_->layout().result_at), shape_.elements};
}

void shm_communicator::begin(element_range part, part_done done) {
  if (shape_.world == 1 || memory_->layout().exchanged) return;
  parts_.begin(part);
  lane_.post([this, part, done = std::move(done)]() mutable {
    add_up({&part, 1});
    if (done && met_ == meeting::outcome::complete) done();
  });
}

void shm_communicator::add_up(std::span<const element_range> parts) {
  if (met_ == meeting::outcome::complete) met_ = meeting_.meet();
  if (met_ != meeting::outcome::complete) return;
  auto* result = memory_->at(memory_->layout().result_at);
  for (const auto& part : parts) {
    const auto slice = slice_of(part);
    plan_.evaluate(inputs_[0], slice.begin, slice.end, result, stores_, 0, stride());
  }
  met_ = meeting_.meet();
}

error shm_communicator::ended(meeting::outcome why) {
  if (why == meeting::outcome::corrupt) {
    memory_->abort();
    return {errc::internal,
            "the shared segment of generation " + to_string(shape_.generation) + " was overwritten"};
  }
  return {errc::aborted, "generation " + to_string(shape_.generation) + " was ended"};
}

void shm_communicator::abort() noexcept {
  memory_->abort();
}

std::vector<std::uint64_t> shm_communicator::arrivals() const {
  return meeting_.arrivals();
}

float* shm_communicator::slot(std::uint32_t number) const {
  return memory_->at(memory_->layout().slots_at + number * memory_->layout().stride);
}

float* shm_communicator::exchange_slot(std::uint32_t set, std::uint32_t number) const {
  const auto& layout = memory_->layout();
  return memory_->at(layout.result_at + (set * layout.slots + number) * layout.stride);
}

element_range shm_communicator::slice_of(element_range part) const {
  const auto slice = line_slice(part.size(), sizeof(float), shape_.world, rank_);
  return {part.begin + slice.begin, part.begin + slice.end};
}

} // namespace troupe
