#include "cli/run/host_environment.hpp"

#include <utility>

#include "runtime/host/black_box_memory.hpp"

namespace troupe {

host_environment::~host_environment() = default;

expected<std::unique_ptr<host_environment>> host_environment::open(log_level quietest, ucx_settings lanes) {
  std::unique_ptr<host_environment> made{new host_environment{quietest}};
  auto box = open_black_box_from_environment();
  if (!box) return box.failure();
  made->box_ = *box;
  const auto self = random_id_from<incarnation_id>(made->random_);
  auto network = ucx_transport::open(made->loop_.io(), made->clock_, self, std::move(lanes));
  if (!network) return network.failure();
  made->network_ = std::move(*network);
  made->loop_.look_with([there = made->network_.get()] { return there->look(); });
  made->env_ = std::make_unique<environment>(
      environment{made->loop_, made->clock_, made->random_, *made->network_, made->collectives_,
                  made->compute_, made->reader_, made->storage_thread_, made->files_, made->processes_,
                  *made->box_, made->self_, made->log_});
  return made;
}

} // namespace troupe
