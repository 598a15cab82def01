#include "runtime/seams/process.hpp"

#include <csignal>
#include <cstring>

namespace troupe {

std::string process_exit::text() const {
  if (!signalled) return "exit code " + std::to_string(code);
  const char* name = ::sigabbrev_np(code);
  return "killed by SIG" + (name != nullptr ? std::string{name} : std::to_string(code));
}

} // namespace troupe
