#include <utility>

#include "tests/support/notice_board.hpp"
#include "tests/support/ring_process.hpp"
#include "tests/unit/collective/world_processes.hpp"
#include "tests/unit/ring/ring_worlds.hpp"

namespace troupe::worlds {

namespace {

class ring_process_world final : public world {
public:
  explicit ring_process_world(ring_settings settings)
      : settings_{settings} {}
  [[nodiscard]] std::string name() const override { return "ring processes over UCX"; }
  [[nodiscard]] bool splits_nobody() const override { return false; }
  [[nodiscard]] bool hears_all() const override { return false; } // by doubling
  [[nodiscard]] std::vector<int> run(const collective_shape& shape, const body& work) override {
    test::notice_board board{shape.world};
    start_line all_done{shape.world};
    return run_connected(
        shape.world,
        [&](std::uint32_t rank) -> expected<std::unique_ptr<communicator>> {
          auto* here = new test::ring_process{settings_}; // until the process exits
          auto known = shape;
          known.members = board.exchange(rank, here->who());
          const auto descriptor = here->ring().prepare(known);
          if (!descriptor) return descriptor.failure();
          return here->connect(*descriptor, known, rank);
        },
        [&](communicator& member, std::uint32_t rank) {
          const auto result = work(member, rank);
          return all_done.wait() ? result : deadline_passed; // the others may still need this process
        });
  }

private:
  ring_settings settings_;
};

} // namespace

std::unique_ptr<world> ring_processes(ring_settings settings) {
  return std::make_unique<ring_process_world>(settings);
}

} // namespace troupe::worlds
