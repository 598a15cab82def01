// Simulated environment: what one simulated process sees of the outside, composed once.
//
// Owns:     the seams of that process; the machine (world, network, disk, collective memory) is shared.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/seams/environment.hpp"
#include "runtime/sim/sim_collective.hpp"
#include "runtime/sim/sim_network.hpp"
#include "runtime/sim/sim_process_host.hpp"
#include "runtime/sim/sim_storage.hpp"
#include "runtime/sim/sim_world.hpp"

namespace troupe {

// One simulated host, with everything that outlives its processes.
struct sim_machine {
  explicit sim_machine(std::uint64_t seed, sim_world_settings settings = {},
                       sim_network_settings network_settings = {})
      : world{seed, settings}
      , network{world, network_settings} {}
  ~sim_machine() { world.close(); } // the processes go before what they hold

  sim_world world;
  sim_storage disk;
  std::vector<std::string> log; // of all processes, in order
  sim_network network;
  sim_collective_hub collectives{world};
};

class sim_log final : public log_sink {
public:
  sim_log(sim_machine& machine, std::int64_t pid)
      : machine_{machine}
      , pid_{pid} {}
  void write(log_level level, std::string_view room, std::string_view text) override;

private:
  sim_machine& machine_;
  std::int64_t pid_;
};

class sim_environment {
public:
  // `children`: what the processes that this one starts run; none: it starts none.
  sim_environment(sim_machine& machine, sim_process& process, sim_process_host::child_factory children = {});
  [[nodiscard]] environment& env() { return env_; }

private:
  std::unique_ptr<transport> network_;
  std::unique_ptr<collective> collectives_;
  sim_files files_;
  sim_process_host processes_;
  sim_log log_;
  environment env_;
};

} // namespace troupe
