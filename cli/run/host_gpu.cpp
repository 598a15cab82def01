#include "cli/run/host_gpu.hpp"

#include <cstdlib>
#include <future>
#include <utility>

#include "runtime/host/expendable_thread.hpp"

namespace troupe {
namespace {

std::shared_ptr<gpu_device> device_of(loaded_gpu& calls, const gpu_libraries& libraries, const gpu_use& use,
                                      const gpu_threads& threads) {
  if (use.prepares_only) return nullptr;
  return gpu_device::make(calls,
                          {.owner = threads.owner,
                           .loop = threads.loop,
                           .clock = threads.clock,
                           .spawn = run_expendable,
                           .end_process = use.end_process},
                          {.name = "cuda:" + std::to_string(use.index) + (libraries.fake ? " (FAKE)" : ""),
                           .life = {},
                           .sums_of_host = true});
}

} // namespace

host_gpu::host_gpu(const gpu_libraries& libraries, const gpu_use& use, const gpu_threads& threads)
    : calls_{libraries}
    , fake_{libraries.fake}
    , device_{device_of(calls_, libraries, use, threads)}
    , sums_{calls_, device_} {}

expected<std::unique_ptr<host_gpu>> host_gpu::open(const gpu_use& use, const gpu_threads& threads,
                                                   const std::string& network) {
  // Else NCCL takes the first device that it likes: loopback is the default here.
  if (!network.empty()) ::setenv("NCCL_SOCKET_IFNAME", ("=" + network).c_str(), 0);
  const auto names = gpu_library_names::from_environment();
  auto libraries = gpu_libraries::load(names, use.index); // all: any of them may be a fake
  if (!libraries && use.prepares_only) libraries = gpu_libraries::load_nccl(names);
  if (!libraries) return libraries.failure();
  std::unique_ptr<host_gpu> made{new host_gpu{*libraries, use, threads}};
  if (use.prepares_only) return made;
  std::promise<expected<void>> opened;
  threads.owner.post([&] { opened.set_value(made->calls_.open(use.index)); });
  if (auto result = opened.get_future().get(); !result) return result.failure();
  return made;
}

expected<void> host_gpu::look(std::uint32_t first, std::uint32_t last) {
  const auto names = gpu_library_names::from_environment();
  for (const auto index : {first, last})
    if (const auto loaded = gpu_libraries::load(names, index); !loaded) return loaded.failure();
  return {};
}

void host_gpu::set_deadlines(const timeouts& limits) {
  if (device_ == nullptr) return;
  device_->set({.init_deadline = limits.first_step_deadline,
                .close_deadline = limits.shutdown_grace,
                .abort_deadline = 2 * limits.lease});
}

bool host_gpu::rests() const {
  const auto state = device_ == nullptr ? life_state::none : device_->state();
  return state == life_state::none || state == life_state::stuck;
}

} // namespace troupe
