// Slow executor: while its switch is on, every task takes a number of times as long.
#pragma once

#include <memory>
#include <utility>

#include "runtime/faults/fault_switches.hpp"
#include "runtime/seams/executor.hpp"

namespace troupe {

class slow_executor final : public executor {
public:
  slow_executor(executor& inner, const fault_switches& switches, const timed_switch& slow)
      : inner_{inner}
      , switches_{switches}
      , slow_{slow} {}

  void post(task work) override {
    inner_.post([&inner = inner_, &switches = switches_, &slow = slow_,
                 held = std::make_unique<task>(std::move(work))] {
      (*held)();
      if (slow.on(switches.now())) inner.stretch(slow.factor());
    });
  }
  void stretch(double factor) override { inner_.stretch(factor); }

private:
  executor& inner_;
  const fault_switches& switches_;
  const timed_switch& slow_;
};

} // namespace troupe
