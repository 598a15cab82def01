// Drawn order: tasks of several executors on one thread, one at a time, whose turn it is drawn from a seed.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/base/counter_rng.hpp"
#include "tests/support/manual_executor.hpp"

namespace troupe::test {

class drawn_order {
public:
  static constexpr std::size_t all = 1'000'000; // tasks: where there are more, they never end

  explicit drawn_order(std::uint64_t seed)
      : random_{seed, 0} {}

  // Not owned. One with more shares is drawn so many times as often.
  void add(manual_executor& one, std::size_t shares = 1) {
    executors_.insert(executors_.end(), shares, &one);
  }
  // Runs one task of any executor that has some; false: nothing is left to do.
  bool run_one() {
    std::vector<manual_executor*> ready;
    for (auto* each : executors_)
      if (each->pending() > 0) ready.push_back(each);
    if (ready.empty()) return false;
    return ready[random_.block(drawn_++)[0] % ready.size()]->run_one();
  }
  std::size_t run(std::size_t tasks_max = all) {
    std::size_t ran = 0;
    while (ran < tasks_max && run_one())
      ++ran;
    return ran;
  }

private:
  counter_rng random_;
  std::uint64_t drawn_{0};
  std::vector<manual_executor*> executors_;
};

} // namespace troupe::test
