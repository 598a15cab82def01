// CPU device: kernels run on one thread of their own.
#pragma once

#include "runtime/host/thread_executor.hpp"
#include "runtime/seams/device.hpp"

namespace troupe {

class cpu_device final : public device {
public:
  [[nodiscard]] std::string name() const override { return "cpu"; }
  [[nodiscard]] executor& queue() override { return thread_; }

private:
  thread_executor thread_{"troupe-cpu"};
};

} // namespace troupe
