// Process seam: starts, signals and reaps the processes of this host. Event loop only.
//
// A child is reaped as soon as it ends, whatever else happens (a zombie looks alive to shared memory).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/base/error.hpp"
#include "runtime/base/task.hpp"

namespace troupe {

struct process_exit {
  std::int64_t pid{0};
  bool signalled{false};
  int code{0}; // exit code, or signal number when `signalled`
  [[nodiscard]] std::string text() const; // "killed by SIGKILL", "exit code 3"
};

struct process_spec {
  std::string program;                  // path
  std::vector<std::string> arguments;   // without argv[0]
  std::vector<std::string> environment; // "NAME=value", added to the parent's; no secrets here
  std::vector<int> inherited_fds;       // kept open under the same numbers
};

using process_exit_handler = inline_function<void(const process_exit&), 64>;

class process_host {
public:
  virtual ~process_host() = default;
  virtual expected<std::int64_t> start(const process_spec& spec, process_exit_handler on_exit) = 0;
  virtual expected<void> signal(std::int64_t pid, int signal_number) = 0;
};

} // namespace troupe
