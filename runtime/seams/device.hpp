// Device seam: where kernels run. One owner thread a device issues everything, in order.
#pragma once

#include <string>

#include "runtime/seams/executor.hpp"

namespace troupe {

class device {
public:
  virtual ~device() = default;
  [[nodiscard]] virtual std::string name() const = 0; // "cpu", "cuda:0"
  [[nodiscard]] virtual executor& queue() = 0;        // the owner thread
};

} // namespace troupe
