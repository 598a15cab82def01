#include "transports/shm/shm_collective.hpp"

#include <utility>

#include <sched.h>

#include "transports/shm/shm_communicator.hpp"

namespace troupe {

namespace {

std::uint32_t usable_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (::sched_getaffinity(0, sizeof set, &set) != 0) return 1;
  return static_cast<std::uint32_t>(CPU_COUNT(&set));
}

} // namespace

shm_collective::shm_collective(shm_settings settings)
    : settings_{settings} {
  if (settings_.cores == 0) settings_.cores = usable_cores();
}

shm_collective::~shm_collective() {
  end_generation();
}

expected<std::string> shm_collective::prepare(const collective_shape& shape) {
  auto made = segment::create(shape);
  if (!made) return made.failure();
  end_generation();
  current_ = std::move(*made);
  return current_->descriptor();
}

expected<std::unique_ptr<communicator>> shm_collective::connect(const std::string& descriptor,
                                                                const collective_shape& shape, rank_id rank) {
  auto opened = segment::open(descriptor, shape);
  if (!opened) return opened.failure();
  return shm_communicator::make(std::move(*opened), shape, rank, tuning_for(shape.world, settings_.cores),
                                settings_.lane);
}

std::vector<std::uint64_t> shm_collective::arrivals() const {
  if (current_ == nullptr) return {};
  return arrivals_of(current_->lines());
}

void shm_collective::end_generation() noexcept {
  if (current_ == nullptr) return;
  current_->abort();
  current_ = nullptr;
}

} // namespace troupe
