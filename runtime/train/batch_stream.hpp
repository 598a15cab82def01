// Provisional: the step engine's view of the data room's stream.
#pragma once

#include <optional>

#include "runtime/base/error.hpp"
#include "runtime/base/task.hpp"
#include "runtime/data/batch.hpp"

namespace troupe {

class batch_stream {
public:
  virtual ~batch_stream() = default;
  virtual expected<std::optional<batch>> try_next() = 0;
  virtual void set_on_ready(task ready) = 0;
  virtual void released() = 0;
};

} // namespace troupe
