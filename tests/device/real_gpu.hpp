// The GPUs of this machine; a test without one is skipped, and says what is missing.
#pragma once

#include <cstdint>
#include <optional>

#include <catch2/catch_test_macros.hpp>

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

} // namespace troupe::device_test
