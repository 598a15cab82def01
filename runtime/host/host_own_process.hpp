// Own process on this machine: strikes itself with real signals and a real `_exit`. For fault injection.
#pragma once

#include <csignal>

#include <unistd.h>

#include "runtime/seams/own_process.hpp"

namespace troupe {

class host_own_process final : public own_process {
public:
  void raise_signal(int signal_number) override { ::kill(::getpid(), signal_number); }
  void exit_now(int code) override { ::_exit(code); }
};

} // namespace troupe
