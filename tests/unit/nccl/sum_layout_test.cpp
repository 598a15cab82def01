#include <cstdint>

#include <catch2/catch_test_macros.hpp>

#include "tests/unit/nccl/fake_world.hpp"
#include "transports/nccl/nccl_collective.hpp"
#include "transports/nccl/sum_layout.hpp"

namespace troupe {
namespace {

collective_shape shape_of(std::uint64_t generation, std::uint32_t world, std::uint32_t shards = 8) {
  return {generation_id{generation}, world, shards, 1001};
}

TEST_CASE("sum layout: what is needed at most is enough for every rank") {
  for (const std::uint32_t shards : {1U, 7U, 8U, 64U})
    for (std::uint32_t world = 1; world <= shards; ++world) {
      const auto shape = shape_of(1, world, shards);
      const auto most = sum_layout::need_at_most(shape);
      for (std::uint32_t rank = 0; rank < world; ++rank) {
        const auto layout = sum_layout::of(shape, rank_id{rank});
        REQUIRE(layout);
        REQUIRE(layout->bytes() <= most.device);
        REQUIRE(layout->own_slots() * layout->stride() * sizeof(float) <= most.source);
        REQUIRE(layout->stride() * sizeof(float) == most.target);
      }
    }
}

TEST_CASE("nccl collective over a FAKE of NCCL: while a generation is aborted, one of more ranks or fewer is "
          "connected in the memory that there is (NC-7, NC-11)") {
  for (const bool of_host : {false, true})
    for (const std::uint32_t next : {1U, 3U, 5U, 8U}) {
      CAPTURE(of_host, next);
      fake::fake_world world{1};
      world.patient = true; // the abort's deadline does not pass
      auto& here = world.add({}, of_host);
      here.abort_hangs = true;
      std::unique_ptr<communicator> one;
      std::unique_ptr<communicator> after;
      const auto connect = [&](std::uint64_t generation, std::uint32_t ranks) {
        const auto shape = shape_of(generation, ranks);
        const auto descriptor = nccl_collective{here.gpu}.prepare(shape);
        return nccl_collective{here.gpu, here.device}.connect(*descriptor, shape, rank_id{0});
      };
      here.owner.post([&] { one = std::move(connect(1, 2).value()); });
      REQUIRE(world.run_until([&] { return here.device->state() == life_state::initialising; }));
      one->abort();
      REQUIRE(world.run_until([&] { return here.device->state() == life_state::aborting; }));
      here.owner.post([&] {
        one.reset();
        auto made = connect(2, next);
        CAPTURE(made ? "" : made.failure().text);
        REQUIRE(made);
        after = std::move(*made);
      });
      REQUIRE(world.run_until([&] { return after != nullptr; }));
      here.abort_hangs = false;
      after.reset();
      REQUIRE(world.run_until([&] { return here.rests(); }));
      CHECK(world.hub.violations == std::vector<std::string>{});
      world.bury();
    }
}

} // namespace
} // namespace troupe
