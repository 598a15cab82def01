#include "cli/run/host_collectives.hpp"

#include <algorithm>

namespace troupe {

collective_choice choice_of(std::string_view setting) {
  if (setting == "shm") return collective_choice::shm;
  return setting == "ring" ? collective_choice::ring : collective_choice::automatic;
}

expected<std::string> host_collectives::prepare(const collective_shape& shape) {
  const auto elsewhere = std::ranges::find(shape.members, false, &collective_member::same_host);
  const bool one_host = elsewhere == shape.members.end();
  if (choice_ == collective_choice::shm && !one_host)
    return error{errc::bad_argument, "--collective shm: rank " +
                                         std::to_string(elsewhere - shape.members.begin()) +
                                         " shares no memory with the director; accepted: auto, ring"};
  by_ring_ = choice_ == collective_choice::ring || (choice_ == collective_choice::automatic && !one_host);
  if (!by_ring_) return shm_.prepare(shape);
  shm_.end_generation(); // as its own next `prepare` would
  return ring_.prepare(shape);
}

std::vector<std::uint64_t> host_collectives::arrivals() const {
  return by_ring_ ? std::vector<std::uint64_t>{} : shm_.arrivals();
}

expected<std::unique_ptr<communicator>>
host_collectives::connect(const std::string& descriptor, const collective_shape& shape, rank_id rank) {
  return ring_collective::made(descriptor) ? ring_.connect(descriptor, shape, rank)
                                           : shm_.connect(descriptor, shape, rank);
}

} // namespace troupe
