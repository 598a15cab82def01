// The GPUs of this machine; a test without one is skipped, and says what is missing.
#pragma once

#include <cstdint>
#include <optional>

#include <catch2/catch_test_macros.hpp>

#include "tests/unit/collective/world_processes.hpp"
#include "tests/unit/nccl/gpu_worlds.hpp"
#include "transports/nccl/gpu_libraries.hpp"

namespace troupe::device_test {

inline gpu_libraries libraries() {
  auto loaded = gpu_libraries::load({}, 0);
  if (!loaded) SKIP("no GPU was used: " << loaded.failure().text);
  return *loaded;
}

// Asked in the process that calls: do not fork afterwards.
inline std::uint32_t devices() {
  int count = 0;
  (void)libraries().cuda.get_device_count(&count);
  return static_cast<std::uint32_t>(count);
}

// CUDA does not survive a fork, so a child counts; 0 where nothing loads.
inline std::uint32_t devices_here() {
  const auto counted = worlds::run_processes(1, [](std::uint32_t) {
    const auto loaded = gpu_libraries::load({}, 0);
    int count = 0;
    if (loaded) (void)loaded->cuda.get_device_count(&count);
    return count;
  });
  return counted[0] > 0 ? static_cast<std::uint32_t>(counted[0]) : 0;
}

inline worlds::gpu_world_settings real(const life_settings& life = {}, bool sums_of_host = false) {
  return {.name = "real GPUs, processes", .libraries = {}, .life = life, .sums_of_host = sums_of_host};
}

} // namespace troupe::device_test
