// A world of processes with a GPU each, over whatever libraries it is told: the fake ones, or real ones.
//
// A body sees memory of the host: what it contributes is copied to the device, and the sum back, by this
// world or by the device itself (gpu_settings). An abort by
// one member is passed on to all, as a director does it; arrivals are counted where the others can see them.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "tests/unit/collective/collective_worlds.hpp"
#include "transports/nccl/gpu_device.hpp"
#include "transports/nccl/gpu_libraries.hpp"

namespace troupe::worlds {

inline constexpr int not_loaded = 1002;
inline constexpr int not_settled = 1003;
inline constexpr int ended_itself = 1004; // the last resort: an abort did not return

struct gpu_world_settings {
  std::string name;
  gpu_library_names libraries;
  life_settings life;
  bool sums_of_host{false};
};

// One process of that world: its loop, owner thread, device. Also for tests that need no world.
class gpu_process {
public:
  explicit gpu_process(const gpu_world_settings& settings);
  ~gpu_process();
  gpu_process(const gpu_process&) = delete;
  gpu_process& operator=(const gpu_process&) = delete;

  [[nodiscard]] expected<void> open(std::uint32_t index); // loads, and opens the device
  [[nodiscard]] std::shared_ptr<gpu_device> device() const;
  // Runs `work` on the owner thread, and waits for it.
  void on_owner(const std::function<void(gpu& calls)>& work);
  // Connects on the owner thread. Host memory in and out; `arrivals` [ranks_max] counts, may be null.
  [[nodiscard]] expected<std::unique_ptr<communicator>>
  connect(const std::string& descriptor, const collective_shape& shape, rank_id rank,
          std::atomic<std::uint64_t>* arrivals = nullptr);
  [[nodiscard]] bool settled() const; // waits until no communicator is left

private:
  struct state;
  std::unique_ptr<state> state_;
};

inline constexpr std::uint32_t gpu_world_ranks_max = 8;

// A process that only prepares: what a director does. It ends with this object.
class gpu_director {
public:
  explicit gpu_director(const gpu_library_names& libraries);
  ~gpu_director();
  gpu_director(const gpu_director&) = delete;
  gpu_director& operator=(const gpu_director&) = delete;
  [[nodiscard]] std::string prepare(const collective_shape& shape); // empty: it could not

private:
  int pid_{-1};
  int asks_[2]{-1, -1};
  int answers_[2]{-1, -1};
};

[[nodiscard]] std::unique_ptr<world> gpu_processes(gpu_world_settings settings);

} // namespace troupe::worlds
