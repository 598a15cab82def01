// Own process on this machine: its counters; strikes itself with real signals and a real `_exit`.
#pragma once

#include "runtime/seams/own_process.hpp"

namespace troupe {

class host_own_process final : public own_process {
public:
  void raise_signal(int signal_number) override;
  void exit_now(int code) override;
  [[nodiscard]] process_counters counters() const override;
};

} // namespace troupe
