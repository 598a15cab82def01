// Own-process seam: how a process strikes itself. For fault injection only: product code never ends one.
#pragma once

namespace troupe {

class own_process {
public:
  virtual ~own_process() = default;
  // Real: never returns for a deadly signal. Simulated: takes effect before the next task.
  virtual void raise_signal(int signal_number) = 0;
  virtual void exit_now(int code) = 0; // without any clean-up, as `_exit`
};

} // namespace troupe
