#include "transports/nccl/sum_layout.hpp"

#include <algorithm>
#include <cstring>

#include "runtime/base/limits.hpp"
#include "runtime/policy/canonical_plan.hpp"
#include "transports/nccl/limits.hpp"

namespace troupe {

namespace {

constexpr std::size_t line_elements = 16; // 64 bytes

error impossible(const collective_shape& shape, const std::string& why) {
  return {errc::bad_argument, "collective: impossible shape: world " + std::to_string(shape.world) + ", " +
                                  std::to_string(shape.shards) + " shards, " +
                                  std::to_string(shape.elements) + " elements: " + why};
}

std::size_t round_up(std::size_t value, std::size_t to) {
  return (value + to - 1) / to * to;
}

} // namespace

expected<sum_layout> sum_layout::of(const collective_shape& shape, rank_id rank) {
  if (shape.world == 0 || shape.world > limits::workers_max || shape.shards == 0 ||
      shape.shards > limits::shards_max || shape.elements == 0 ||
      shape.elements > limits::bulk_bytes_max / sizeof(float))
    return impossible(shape, "outside the limits");
  if (rank.value() >= shape.world) return impossible(shape, "no rank " + to_string(rank));
  if (shape.wire != element_type::float32) return impossible(shape, "gradients are summed as float32 only");
  if (!shape.cuts.empty()) return impossible(shape, "all ranks of a world only");
  if (shape.kept != 0) return impossible(shape, "gradients are summed whole only");
  const auto program = combine_program(shape.shards, shape.world);
  if (program.stack_depth > limits::nccl_sum_depth_max) return impossible(shape, "too deep a tree");

  sum_layout made;
  made.rank_ = rank.value();
  made.world_ = shape.world;
  made.first_slots_ = first_slots(shape.shards, shape.world);
  made.own_slots_ = made.first_slots_[made.rank_ + 1] - made.first_slots_[made.rank_];
  for (const auto& step : program.steps)
    made.program_.push_back(
        step.what == combine_step::action::add ? kernels::add : made.first_slots_[step.rank] + step.index);

  made.slice_ = round_up((shape.elements + shape.world - 1) / shape.world, line_elements);
  made.stride_ = made.slice_ * shape.world;
  const auto slots = made.first_slots_.back();
  made.received_offset_ = made.own_slots_ * made.stride_ * sizeof(float);
  made.sum_offset_ = made.received_offset_ + (slots - made.own_slots_) * made.slice_ * sizeof(float);
  made.tables_offset_ = made.sum_offset_ + made.stride_ * sizeof(float);
  const auto tables = slots * sizeof(float*) + made.program_.size() * sizeof(std::uint32_t);
  made.bytes_ = round_up(made.tables_offset_ + tables, 64);
  return made;
}

memory_need sum_layout::need_at_most(const collective_shape& shape) {
  const auto firsts = first_slots(shape.shards, shape.world);
  std::size_t own = 0;
  for (std::uint32_t rank = 0; rank < shape.world; ++rank)
    own = std::max<std::size_t>(own, firsts[rank + 1] - firsts[rank]);
  const std::size_t slots = firsts.back();
  const auto slice =
      round_up((shape.elements + shape.world - 1) / shape.world, line_elements) * sizeof(float);
  const auto stride = slice * shape.world;
  const auto tables =
      slots * sizeof(float*) + 2 * slots * sizeof(std::uint32_t); // an addition fewer than slots
  return {.device = round_up(own * stride + slots * slice + stride + tables, 64),
          .source = own * stride,
          .target = stride};
}

float* sum_layout::contribution(std::byte* base, std::uint32_t index) const {
  return reinterpret_cast<float*>(base) + index * stride_;
}

float* sum_layout::sum(std::byte* base) const {
  // One rank alone owns the root: its contribution is the sum.
  return reinterpret_cast<float*>(base + (world_ == 1 ? 0 : sum_offset_));
}

float* sum_layout::own_slice(std::byte* base) const {
  return sum(base) + rank_ * slice_;
}

float* sum_layout::slot(std::byte* base, std::uint32_t number) const {
  const auto first = first_slots_[rank_];
  const auto after = first_slots_[rank_ + 1];
  if (number >= first && number < after) return contribution(base, number - first) + rank_ * slice_;
  const auto place = number < first ? number : number - own_slots_;
  return reinterpret_cast<float*>(base + received_offset_) + place * slice_;
}

std::vector<transfer> sum_layout::transfers(std::byte* base) const {
  const auto bytes = slice_ * sizeof(float);
  std::vector<transfer> all;
  for (std::uint32_t peer = 0; peer < world_; ++peer) {
    if (peer == rank_) continue;
    for (std::uint32_t index = 0; index < own_slots_; ++index)
      all.push_back({.peer = peer, .from = contribution(base, index) + peer * slice_, .bytes = bytes});
    for (auto number = first_slots_[peer]; number < first_slots_[peer + 1]; ++number)
      all.push_back({.peer = peer, .to = slot(base, number), .bytes = bytes});
  }
  return all;
}

std::vector<std::byte> sum_layout::tables(std::byte* base) const {
  std::vector<const float*> slots;
  for (std::uint32_t number = 0; number < first_slots_.back(); ++number)
    slots.push_back(slot(base, number));
  const auto slots_bytes = slots.size() * sizeof(float*);
  std::vector<std::byte> all(slots_bytes + program_.size() * sizeof(std::uint32_t));
  std::memcpy(all.data(), slots.data(), slots_bytes);
  std::memcpy(all.data() + slots_bytes, program_.data(), program_.size() * sizeof(std::uint32_t));
  return all;
}

kernels::sum_arguments sum_layout::arguments(std::byte* base) const {
  const auto* tables = tables_at(base);
  return {.program = reinterpret_cast<const std::uint32_t*>(tables + first_slots_.back() * sizeof(float*)),
          .steps = static_cast<std::uint32_t>(program_.size()),
          .slots = reinterpret_cast<const float* const*>(tables),
          .result = own_slice(base),
          .elements = slice_};
}

} // namespace troupe
