#include "cli/run/host_environment.hpp"

#include <chrono>
#include <utility>

#include "runtime/host/black_box_memory.hpp"

namespace troupe {

host_environment::~host_environment() = default;

expected<std::unique_ptr<host_environment>> host_environment::open(log_level quietest, ucx_settings lanes,
                                                                   const std::optional<gpu_use>& gpu) {
  std::unique_ptr<host_environment> made{new host_environment{quietest}};
  auto box = open_black_box_from_environment();
  if (!box) return box.failure();
  made->box_ = *box;
  const auto self = random_id_from<incarnation_id>(made->random_);
  if (gpu) {
    auto opened = host_gpu::open(*gpu, {made->compute_.queue(), made->loop_, made->clock_}, lanes.devices);
    if (!opened) return opened.failure();
    made->gpu_ = std::move(*opened);
    made->collectives_.use(*made->gpu_);
  }
  device* const on_gpu = made->gpu_ == nullptr ? nullptr : made->gpu_->compute();
  auto network = ucx_transport::open(made->loop_.io(), made->clock_, self, std::move(lanes));
  if (!network) return network.failure();
  made->network_ = std::move(*network);
  made->loop_.look_with([there = made->network_.get()] { return there->look(); });
  made->env_ = std::make_unique<environment>(
      environment{made->loop_, made->clock_, made->random_, *made->network_, made->collectives_,
                  on_gpu == nullptr ? made->compute_ : *on_gpu, made->reader_, made->storage_thread_,
                  made->files_, made->processes_, *made->box_, made->self_, made->log_});
  return made;
}

void host_environment::set_deadlines(const timeouts& limits) {
  if (gpu_ != nullptr) gpu_->set_deadlines(limits);
}

void host_environment::rest_gpu() {
  constexpr auto longest = std::chrono::seconds{5};
  if (gpu_ != nullptr) (void)loop_.run_until([this] { return gpu_->rests(); }, longest);
}

} // namespace troupe
