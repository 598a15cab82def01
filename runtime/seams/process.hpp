// Process seam: starts, signals and reaps the processes of this host. Event loop only.
//
// A child is reaped as soon as it ends, whatever else happens (a zombie looks alive to shared memory).
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "runtime/base/error.hpp"
#include "runtime/base/task.hpp"
#include "runtime/base/time.hpp"
#include "runtime/seams/flight_ring.hpp"

namespace troupe {

// What a worker was doing, in memory that outlives it: written by the worker, read by its parent, also
// after SIGKILL. Real: a shared mapping that the child inherits. Lock-free words only.
struct black_box {
  std::atomic<std::uint64_t> step_started{0}; // the step being computed (1-based), 0 before the first
  std::atomic<std::uint64_t> step_applied{0};
  std::atomic<std::int64_t> fault_ns{0};     // when an injected fault struck (clock seam), 0: none
  std::atomic<std::int64_t> fault_for_ns{0}; // how long a `stop` shall last, 0: for ever
  std::atomic<std::uint64_t> fault_index{0}; // 1 + position of that fault in the plan
  std::array<char, 512> cause{};             // why the process is about to end, if it could say so
  flight_ring flight{};                      // its last calls between ranks
};

struct process_exit {
  std::int64_t pid{0};
  bool signalled{false};
  int code{0};                            // exit code, or signal number when `signalled`
  [[nodiscard]] std::string text() const; // "killed by SIGKILL", "exit code 3"
};

struct process_spec {
  std::string program;                  // path
  std::vector<std::string> arguments;   // without argv[0]
  std::vector<std::string> environment; // "NAME=value", added to the parent's; no secrets here
  std::vector<int> inherited_fds;       // kept open under the same numbers
};

struct child_process {
  std::int64_t pid{0};
  std::shared_ptr<const black_box> box; // never null
};

using process_exit_handler = inline_function<void(const process_exit&), 64>;

class process_host {
public:
  virtual ~process_host() = default;
  virtual expected<child_process> start(const process_spec& spec, process_exit_handler on_exit) = 0;
  // Only children that have not been reaped; errc::not_found otherwise.
  virtual expected<void> signal(std::int64_t pid, int signal_number) = 0;
};

} // namespace troupe
