// Two levels between threads: shared memory inside the hosts, the ring over loopback between them.
#include <memory>
#include <thread>
#include <utility>

#include <catch2/catch_test_macros.hpp>

#include "runtime/host/event_loop.hpp"
#include "runtime/host/thread_executor.hpp"
#include "tests/support/posted_communicator.hpp"
#include "tests/unit/collective/collective_contract.hpp"
#include "transports/loopback/loopback_transport.hpp"
#include "transports/ring/ring_collective.hpp"
#include "transports/shm/shm_collective.hpp"
#include "transports/two_level/two_level_collective.hpp"

namespace troupe {
namespace {

// A process without the process.
struct rank_seams {
  rank_seams(event_loop& loop, std::unique_ptr<transport> end, ring_settings settings)
      : network{std::move(end)}
      , inside{{.cores = 2, .lane = &lane}}
      , between{loop, device, settings, &lane}
      , levels{loop, device, inside, between} {
    levels.attach(network.get());
  }
  std::unique_ptr<transport> network;
  thread_executor device{"level-device"};
  thread_executor lane{"level-lane"};
  shm_collective inside;
  ring_collective between;
  two_level_collective levels;
};

class level_world final : public worlds::world {
public:
  level_world(std::vector<std::uint32_t> ranks_of_hosts, ring_settings settings)
      : ranks_{std::move(ranks_of_hosts)}
      , settings_{settings} {}
  [[nodiscard]] std::string name() const override { return "two levels, threads"; }
  [[nodiscard]] bool splits_nobody() const override { return false; }
  [[nodiscard]] bool hears_all() const override { return false; }
  [[nodiscard]] std::vector<int> run(const collective_shape& shape, const worlds::body& work) override {
    event_loop loop;
    loopback_hub hub{loop};
    std::vector<std::unique_ptr<rank_seams>> ranks;
    auto known = shape;
    for (std::uint32_t host = 0; host < ranks_.size(); ++host)
      for (std::uint32_t i = 0; i < ranks_[host]; ++i) {
        const incarnation_id self{1, ranks.size() + 1};
        ranks.push_back(std::make_unique<rank_seams>(loop, hub.open(self), settings_));
        known.members.push_back({self, ranks.back()->network->local_address(), host});
      }
    REQUIRE(ranks.size() == shape.world);
    const auto descriptor = ranks[0]->levels.prepare(known);
    if (!descriptor) return {worlds::not_connected};
    std::thread runner{[&] { loop.run(); }};
    auto results = worlds::run_threads(
        shape.world,
        [&](std::uint32_t rank) {
          return test::connect_posted(ranks[rank]->device, ranks[rank]->levels, *descriptor, known,
                                      rank_id{rank});
        },
        work);
    for (auto& each : ranks)
      each->lane.finish(), each->device.finish();
    test::on(loop, [&] { ranks.clear(); });
    loop.stop();
    runner.join();
    return results;
  }

private:
  std::vector<std::uint32_t> ranks_;
  ring_settings settings_;
};

struct layout {
  std::vector<std::uint32_t> ranks;
  std::uint32_t shards;
};

const layout layouts[]{{{2, 2}, 8},
                       {{2, 2}, 7},
                       {{2, 1, 1}, 8},
                       {{2, 1}, 3},
                       {{3}, 8},
                       {{2, 2, 2}, 8},
                       {{4, 4}, 8},
                       // Hosts of several nodes.
                       {{2, 1}, 8},
                       {{3, 1}, 8},
                       {{1, 2, 1}, 8},
                       {{3, 4}, 21}};
const ring_settings small_pieces{.way = ring_way::slices, .piece_bytes = 4096};

std::uint32_t world_of(const layout& where) {
  std::uint32_t world = 0;
  for (const auto ranks : where.ranks)
    world += ranks;
  return world;
}

TEST_CASE("two levels: sums are canonical, between threads (CO-1, CO-4)") {
  for (const auto& where : layouts)
    for (const auto& settings : {ring_settings{}, small_pieces}) {
      level_world world{where.ranks, settings};
      for (const std::size_t elements : {1U, 3U, 16U, 1000U, 4096U, 4097U, 50'003U})
        contract::sums_are_canonical(world, contract::shape_of(world_of(where), where.shards, elements), 3);
    }
  level_world world{{2, 2}, {}};
  contract::sums_are_canonical(world, contract::shape_of(4, 8, 33), 500);
  contract::sums_are_canonical(world, contract::shape_of(4, 8, 6001), 500);
  contract::sums_are_canonical(world, contract::shape_of(4, 8, 600'001), 3); // handed on in pieces
}

TEST_CASE("two levels: an abort by anybody frees everybody, between threads (CO-2, LM-2)") {
  for (const auto& where : layouts)
    for (const std::size_t elements : {33U, 6001U}) {
      level_world world{where.ranks, {}};
      const auto shape = contract::shape_of(world_of(where), where.shards, elements);
      contract::abort_frees_everybody(world, shape);
      contract::abort_from_another_thread(world, shape);
      for (const std::uint64_t arrivals : {1U, 2U, 7U, 50U})
        contract::an_abort_splits_nobody(world, shape, arrivals);
    }
}

TEST_CASE("two levels: sums in parts, between threads (CO-5, LM-3)") {
  for (const auto& where : layouts) {
    level_world world{where.ranks, small_pieces};
    for (const std::size_t elements : {2U, 33U, 5000U, 50'003U})
      contract::parts_change_nothing(world, contract::shape_of(world_of(where), where.shards, elements), 20);
    for (std::uint64_t seed = 0; seed < 3; ++seed)
      for (std::size_t most = 0; most <= 5; ++most)
        contract::abort_after_parts(world, contract::shape_of(world_of(where), where.shards, 6001), seed,
                                    most);
  }
}

TEST_CASE("two levels: rounded sums are canonical, between threads (CO-1, CS-2)") {
  for (const auto& where : layouts)
    for (const auto wire : {element_type::float16, element_type::bfloat16})
      for (const std::size_t elements : {16U, 1000U, 20'003U}) {
        level_world world{where.ranks, small_pieces};
        auto shape = contract::shape_of(world_of(where), where.shards, elements);
        shape.wire = wire;
        shape.wire_elements = (elements - 16) / 16 * 16;
        contract::parts_change_nothing(world, shape, 5);
      }
}

} // namespace
} // namespace troupe
