#include "runtime/sim/sim_environment.hpp"

namespace troupe {
namespace {

constexpr std::size_t log_lines_max = 10'000;

} // namespace

void sim_log::write(log_level level, std::string_view room, std::string_view text) {
  if (machine_.log.size() == log_lines_max) return;
  const auto at = to_ms(machine_.world.now().time_since_epoch());
  const auto* mark = level == log_level::error ? "error " : level == log_level::warning ? "warning " : "";
  machine_.log.push_back(std::to_string(at) + " ms, process " + std::to_string(pid_) + ": " + mark +
                         std::string{room} + ": " + std::string{text});
}

sim_environment::sim_environment(sim_machine& machine, sim_process& process,
                                 sim_process_host::child_factory children)
    : network_{machine.network.make_transport(process, random_id_from<incarnation_id>(process.random))}
    , collectives_{machine.collectives.make_collective(process)}
    , files_{machine.disk, process}
    , processes_{machine.world, process, std::move(children)}
    , log_{machine, process.pid()}
    , env_{.loop = process.loop,
           .clock = process.clock,
           .random = process.random,
           .network = *network_,
           .collectives = *collectives_,
           .compute = process.compute,
           .reader = process.reader,
           .storage_thread = process.storage_thread,
           .files = files_,
           .processes = processes_,
           .box = *process.box,
           .self = process.self,
           .log = log_} {}

} // namespace troupe
