// Simulated collective: all communicators of all simulated processes, summed canonically, finished after a
// delay drawn from the seed. A dead member never arrives: only `abort` ends the wait, as on real memory.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "runtime/seams/collective.hpp"
#include "runtime/sim/sim_world.hpp"

namespace troupe {

class sim_meeting;

// The place where collectives of all simulated processes meet.
class sim_collective_hub {
public:
  explicit sim_collective_hub(sim_world& world)
      : world_{world} {}
  [[nodiscard]] std::unique_ptr<collective> make_collective(sim_process& owner);

private:
  friend class sim_collective;
  sim_world& world_;
  std::map<std::string, std::shared_ptr<sim_meeting>> meetings_;
  std::uint64_t next_{1};
};

} // namespace troupe
