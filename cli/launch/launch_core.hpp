// Launch core: what to do when a copy of a launched program ends, or when we are told to end.
//
// A plain state machine; `launch.cpp` gives it the ends of processes, signals and time.
// Invariants:
//   LA-1    the first failure decides the exit code, unless a signal from outside came before it.
//   LA-2    once one has failed, or a signal that ends came, all are told to end, once (TERM, or that
//           signal), and killed when the grace is over.
//   LA-3    a second signal that ends kills at once.
//   LA-4    `over` is said once, when every copy has ended.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "runtime/seams/process.hpp"

namespace troupe {

// Exit code as a shell gives it: 128 + N for signal N.
[[nodiscard]] int exit_code_of(const process_exit& end);

class launch_core {
public:
  struct actions {
    int signal_all{0}; // to every copy that still runs; 0: none
    bool arm_grace{false};
    bool over{false};
  };
  struct failed_copy {
    std::uint32_t rank{0};
    process_exit end;
  };

  explicit launch_core(std::uint32_t copies)
      : ends_(copies) {}

  [[nodiscard]] actions on_exit(std::uint32_t rank, const process_exit& end);
  [[nodiscard]] actions on_signal(int number);
  [[nodiscard]] actions on_grace_over();

  [[nodiscard]] bool over() const { return ended_ == ends_.size(); }
  [[nodiscard]] int exit_code() const;
  [[nodiscard]] const std::optional<failed_copy>& first_failure() const { return first_failure_; }
  [[nodiscard]] int signalled() const { return signalled_; } // from outside; 0: not
  [[nodiscard]] const std::vector<std::optional<process_exit>>& ends() const { return ends_; }

private:
  std::vector<std::optional<process_exit>> ends_; // by rank
  std::size_t ended_{0};
  std::optional<failed_copy> first_failure_;
  bool ending_{false};
  int signalled_{0};
};

} // namespace troupe
