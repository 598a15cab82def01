#include "transports/nccl/nccl_communicator.hpp"

#include <algorithm>
#include <utility>

#include "runtime/base/limits.hpp"
#include "transports/nccl/limits.hpp"
#include "transports/nccl/nccl_group.hpp"
#include "transports/nccl/nccl_member.hpp"

namespace troupe {

namespace {

// What any rank of this shape needs, and would need with other numbers of ranks: while a generation is
// aborted, the next one gets what there is (NC-7).
memory_need need_of(const collective_shape& shape) {
  const auto most = std::max(limits::nccl_worlds_min, shape.world + limits::nccl_joined_ranks_max);
  memory_need need;
  for (std::uint32_t world = 1; world <= std::min({most, shape.shards, limits::workers_max}); ++world) {
    auto other = shape;
    other.world = world;
    const auto one = sum_layout::need_at_most(other);
    need.device = std::max(need.device, one.device + nccl_member::box_bytes(other));
    need.source = std::max(need.source, one.source);
    need.target = std::max(need.target, one.target);
  }
  return need;
}

expected<nccl_member::lent_memory> lend(gpu_device& on, const memory_need& need) {
  const auto device = on.lend(need.device);
  if (!device) return device.failure();
  if (!on.sums_of_host()) return nccl_member::lent_memory{.device = *device};
  const auto source = on.lend(need.source, memory_place::host_source);
  const auto target = source ? on.lend(need.target, memory_place::host_target) : source;
  if (target) return nccl_member::lent_memory{.device = *device, .source = *source, .target = *target};
  on.give_back(*device);
  if (source) on.give_back(*source);
  return target.failure();
}

void give_back(gpu_device& on, const nccl_member::lent_memory& lent) {
  for (auto* const one : {lent.device, lent.source, lent.target})
    if (one != nullptr) on.give_back(one);
}

} // namespace

expected<std::unique_ptr<communicator>>
nccl_communicator::make(std::shared_ptr<gpu_device> on, const collective_shape& shape, comm_request request) {
  auto layout = sum_layout::of(shape, rank_id{request.rank});
  if (!layout) return layout.failure();
  const auto memory = lend(*on, need_of(shape));
  if (!memory) return memory.failure();
  auto member = std::make_shared<nccl_member>(on, shape, std::move(*layout), request.rank, *memory);
  if (auto joined = on->join(std::move(request), member); !joined) {
    give_back(*on, *memory);
    return joined.failure();
  }
  return std::unique_ptr<communicator>{new nccl_communicator{std::move(on), std::move(member)}};
}

nccl_communicator::nccl_communicator(std::shared_ptr<gpu_device> on, std::shared_ptr<nccl_member> member)
    : device_{std::move(on)}
    , member_{std::move(member)} {
  if (member_->shape().group_bytes > 0)
    group_ = std::make_unique<nccl_group>(member_, member_->seat_of_all());
}

nccl_communicator::~nccl_communicator() {
  device_->retire([member = member_] { member->leave(); });
}

std::span<float> nccl_communicator::contribution(std::size_t index) {
  return member_->contribution(index);
}

void nccl_communicator::begin(element_range part, part_done /*done*/) {
  member_->begin(part);
}

void nccl_communicator::all_reduce(all_reduce_done done) {
  member_->all_reduce(std::move(done));
}

std::vector<std::uint64_t> nccl_communicator::arrivals() const {
  std::vector<std::uint64_t> all(member_->shape().world);
  all[member_->rank()] = member_->arrived();
  return all;
}

void nccl_communicator::abort() noexcept {
  const auto generation = member_->shape().generation;
  device_->abort(generation, "generation " + to_string(generation) + " was ended");
}

} // namespace troupe
