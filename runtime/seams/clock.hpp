// Clock seam: monotonic time and timers. Timers fire on the event loop's executor.
#pragma once

#include <cstdint>

#include "runtime/base/task.hpp"
#include "runtime/base/time.hpp"

namespace troupe {

using timer_id = std::uint64_t; // 0 is never a timer

class clock_seam {
public:
  virtual ~clock_seam() = default;
  [[nodiscard]] virtual time_point now() const = 0;           // any thread
  virtual timer_id call_after(duration delay, task work) = 0; // event loop only
  virtual void cancel(timer_id timer) = 0;                    // event loop only; unknown ids are ignored
};

} // namespace troupe
