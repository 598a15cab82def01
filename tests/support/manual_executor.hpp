// Manual executor: the test decides when a posted task runs. Bounded; posting and running never allocate.
#pragma once

#include <cstddef>
#include <utility>

#include "runtime/base/bounded_queue.hpp"
#include "runtime/base/invariant.hpp"
#include "runtime/seams/executor.hpp"

namespace troupe::test {

class manual_executor final : public executor {
public:
  explicit manual_executor(std::size_t pending_max = 1024)
      : queue_{pending_max} {}

  void post(task work) override {
    invariant(queue_.try_push(std::move(work)), "manual_executor: no more than pending_max tasks wait");
  }
  [[nodiscard]] std::size_t pending() const { return queue_.size(); }
  // Runs the oldest task; false when there is none.
  bool run_one() {
    auto work = queue_.try_pop();
    if (!work) return false;
    (*work)();
    return true;
  }
  // Runs until nothing waits, also what the tasks post; returns how many ran.
  std::size_t run_all(std::size_t tasks_max = 100000) {
    std::size_t ran = 0;
    while (run_one())
      invariant(++ran < tasks_max, "manual_executor: the tasks come to an end");
    return ran;
  }

private:
  bounded_queue<task> queue_;
};

} // namespace troupe::test
