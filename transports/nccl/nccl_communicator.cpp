#include "transports/nccl/nccl_communicator.hpp"

#include <algorithm>
#include <utility>

#include "transports/nccl/limits.hpp"
#include "transports/nccl/nccl_group.hpp"
#include "transports/nccl/nccl_member.hpp"

namespace troupe {

namespace {

// What this shape needs, and what it would need with a few ranks less.
std::size_t bytes_to_lend(const collective_shape& shape) {
  std::size_t most = 0;
  for (auto world = shape.world; world > 0 && world + limits::nccl_lost_ranks_max >= shape.world; --world) {
    auto smaller = shape;
    smaller.world = world;
    for (const auto rank : {0U, world - 1}) // the largest shares, and the smallest
      if (const auto layout = sum_layout::of(smaller, rank_id{rank}))
        most = std::max(most, nccl_member::bytes_for(shape, *layout));
  }
  return most;
}

} // namespace

expected<std::unique_ptr<communicator>>
nccl_communicator::make(std::shared_ptr<gpu_device> on, const collective_shape& shape, comm_request request) {
  auto layout = sum_layout::of(shape, rank_id{request.rank});
  if (!layout) return layout.failure();
  const auto memory = on->lend(std::max(nccl_member::bytes_for(shape, *layout), bytes_to_lend(shape)));
  if (!memory) return memory.failure();
  auto member = std::make_shared<nccl_member>(on, shape, std::move(*layout), request.rank, *memory);
  if (auto joined = on->join(std::move(request), member); !joined) {
    on->give_back(*memory);
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
  device_->queue().post([member = member_] { member->leave(); });
}

std::span<float> nccl_communicator::contribution(std::size_t index) {
  return member_->contribution(index);
}

void nccl_communicator::all_reduce(all_reduce_done done) {
  member_->all_reduce(std::move(done));
}

void nccl_communicator::abort() noexcept {
  const auto generation = member_->shape().generation;
  device_->abort(generation, "generation " + to_string(generation) + " was ended");
}

} // namespace troupe
