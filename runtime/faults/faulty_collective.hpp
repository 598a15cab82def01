// Faulty collective: communicators that are entered late, not at all, or with a value that is none.
//
// Flow:     step engine -> [faulty communicator] -> the communicator
// Owns:     an all-reduce that has not been entered yet.
// Runs on:  the device's executor; `abort` from any thread. It never blocks: a hanging rank's all-reduce is
//           kept, and entered when its time is over or the generation is. Rank groups are the inner ones.
// Invariants: those of the collective seam (CO-1 to CO-3; CO-4 is what a skipped all-reduce breaks), and
//   FC-1    an all-reduce that hangs has not arrived: `arrivals` shows it behind.
#pragma once

#include "runtime/faults/fault_switches.hpp"
#include "runtime/seams/collective.hpp"
#include "runtime/seams/executor.hpp"

namespace troupe {

// Where a faulty communicator runs, and what wakes it.
struct collective_surroundings {
  executor& loop;
  clock_seam& clock; // the true one
  executor& device;
  fault_switches& switches;
};

class faulty_collective final : public collective {
public:
  faulty_collective(collective& inner, const collective_surroundings& around)
      : inner_{inner}
      , around_{around} {}
  [[nodiscard]] expected<std::string> prepare(const collective_shape& shape) override {
    return inner_.prepare(shape);
  }
  [[nodiscard]] expected<std::unique_ptr<communicator>>
  connect(const std::string& descriptor, const collective_shape& shape, rank_id rank) override;
  void attach(transport* network) override { inner_.attach(network); }
  void set_unreachable_handler(unreachable_handler handler) override {
    inner_.set_unreachable_handler(std::move(handler));
  }

private:
  collective& inner_;
  collective_surroundings around_;
};

} // namespace troupe
