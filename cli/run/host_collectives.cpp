#include "cli/run/host_collectives.hpp"

#include <algorithm>

namespace troupe {

collective_choice choice_of(std::string_view setting) {
  if (setting == "shm") return collective_choice::shm;
  return setting == "ring" ? collective_choice::ring : collective_choice::automatic;
}

expected<std::string> host_collectives::prepare(const collective_shape& shape) {
  if (gpu_ != nullptr) return gpu_->sums().prepare(shape);
  const auto elsewhere =
      std::ranges::find_if(shape.members, [](const collective_member& each) { return each.host != 0; });
  const bool one_host = elsewhere == shape.members.end();
  if (choice_ == collective_choice::shm && !one_host)
    return error{errc::bad_argument, "--collective shm: rank " +
                                         std::to_string(elsewhere - shape.members.begin()) +
                                         " shares no memory with the director; accepted: auto, ring"};
  why_.clear();
  if (one_host && choice_ != collective_choice::ring) {
    used_ = &shm_;
    return shm_.prepare(shape);
  }
  shm_.end_generation(); // as its own next `prepare` would
  if (choice_ == collective_choice::automatic) {
    const auto plan = level_plan::make(shape);
    if (plan) {
      used_ = &levels_;
      return levels_.prepare(shape, *plan);
    }
    why_ = plan.failure().text;
  }
  used_ = &ring_;
  return ring_.prepare(shape);
}

std::vector<std::uint64_t> host_collectives::arrivals() const {
  return gpu_ != nullptr ? gpu_->sums().arrivals() : used_->arrivals();
}

expected<std::unique_ptr<communicator>>
host_collectives::connect(const std::string& descriptor, const collective_shape& shape, rank_id rank) {
  if (nccl_collective::made(descriptor) != (gpu_ != nullptr))
    return error{errc::bad_argument, gpu_ != nullptr ? "the job does not sum on GPUs, and this worker does"
                                                     : "the job sums on GPUs, and this worker has none"};
  if (gpu_ != nullptr) return gpu_->sums().connect(descriptor, shape, rank);
  if (two_level_collective::made(descriptor)) return levels_.connect(descriptor, shape, rank);
  inside_.end_generation(); // nobody sums in what this process made for its host before
  if (ring_collective::made(descriptor)) return ring_.connect(descriptor, shape, rank);
  return shm_.connect(descriptor, shape, rank);
}

} // namespace troupe
