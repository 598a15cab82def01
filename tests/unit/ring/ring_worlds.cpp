#include "tests/unit/ring/ring_worlds.hpp"

#include <thread>
#include <utility>
#include <vector>

#include "runtime/host/event_loop.hpp"
#include "runtime/host/thread_executor.hpp"
#include "tests/support/posted_communicator.hpp"
#include "transports/loopback/loopback_transport.hpp"

namespace troupe::worlds {

namespace {

class ring_thread_world final : public world {
public:
  explicit ring_thread_world(ring_settings settings)
      : settings_{settings} {}
  [[nodiscard]] std::string name() const override {
    return "ring threads, " + (settings_.way ? std::string{to_string(*settings_.way)} : "any way");
  }
  [[nodiscard]] bool splits_nobody() const override { return false; }
  [[nodiscard]] bool hears_all() const override { return false; } // by doubling
  [[nodiscard]] std::vector<int> run(const collective_shape& shape, const body& work) override {
    event_loop loop;
    loopback_hub hub{loop};
    std::vector<std::unique_ptr<transport>> ends;
    std::vector<std::unique_ptr<thread_executor>> devices, lanes;
    std::vector<std::unique_ptr<ring_collective>> rings;
    auto known = shape;
    for (std::uint32_t rank = 0; rank < shape.world; ++rank) {
      ends.push_back(hub.open({1, rank + 1}));
      devices.push_back(std::make_unique<thread_executor>("ring-device"));
      lanes.push_back(std::make_unique<thread_executor>("ring-lane"));
      rings.push_back(
          std::make_unique<ring_collective>(loop, *devices.back(), settings_, lanes.back().get()));
      rings.back()->attach(ends.back().get());
      known.members.push_back({ends.back()->self(), ends.back()->local_address()});
    }
    const auto descriptor = rings[0]->prepare(known);
    if (!descriptor) return {not_connected};
    std::thread runner{[&] { loop.run(); }};
    auto results = run_threads(
        shape.world,
        [&](std::uint32_t rank) {
          return test::connect_posted(*devices[rank], *rings[rank], *descriptor, known, rank_id{rank});
        },
        work);
    for (auto* threads : {&lanes, &devices})
      for (auto& each : *threads)
        each->finish();
    test::on(loop, [&] { rings.clear(); });
    loop.stop();
    runner.join();
    return results;
  }

private:
  ring_settings settings_;
};

} // namespace

std::unique_ptr<world> ring_threads(ring_settings settings) {
  return std::make_unique<ring_thread_world>(settings);
}

} // namespace troupe::worlds
