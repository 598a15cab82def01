// Ring table: the ranks of a generation around one loopback hub, on one thread, in an order drawn from a
// seed.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tests/support/drawn_order.hpp"
#include "tests/unit/collective/reference.hpp"
#include "transports/loopback/loopback_transport.hpp"
#include "transports/ring/ring_collective.hpp"

namespace troupe::test {

class ring_table {
public:
  struct seat {
    std::unique_ptr<manual_executor> device{std::make_unique<manual_executor>()};
    std::unique_ptr<manual_executor> lane{std::make_unique<manual_executor>()};
    std::unique_ptr<transport> network;
    std::unique_ptr<ring_collective> ring;
    std::unique_ptr<communicator> member;
    std::optional<expected<reduction>> answer; // of the newest all-reduce
  };

  ring_table(std::uint32_t world, std::uint64_t seed, ring_settings settings)
      : order_{seed}
      , seats_(world) {
    order_.add(loop_, 3);
    for (std::uint32_t rank = 0; rank < world; ++rank) {
      auto& at = seats_[rank];
      at.network = hub_.open({1, rank + 1});
      at.ring = std::make_unique<ring_collective>(loop_, *at.device, settings, at.lane.get());
      at.ring->attach(at.network.get());
      order_.add(*at.device);
      order_.add(*at.lane);
    }
  }
  ~ring_table() {
    for (auto& at : seats_)
      at.member.reset();
    run();
    for (auto& at : seats_)
      at.ring->attach(nullptr);
  }

  [[nodiscard]] seat& operator[](std::uint32_t rank) { return seats_[rank]; }
  [[nodiscard]] std::uint32_t world() const { return static_cast<std::uint32_t>(seats_.size()); }

  // The first `world` seats; the others stay away.
  [[nodiscard]] collective_shape shape(std::uint64_t generation, std::uint32_t shards, std::size_t elements,
                                       std::uint32_t world = 0) {
    collective_shape made{generation_id{generation}, world == 0 ? this->world() : world, shards, elements};
    for (std::uint32_t rank = 0; rank < made.world; ++rank)
      made.members.push_back({seats_[rank].network->self(), seats_[rank].network->local_address()});
    return made;
  }
  void connect(const collective_shape& shape, std::uint32_t rank) {
    const auto descriptor = seats_[0].ring->prepare(shape);
    seats_[rank].member.reset(); // as a worker: the old one goes when the new one comes
    auto made = seats_[rank].ring->connect(descriptor.value(), shape, rank_id{rank});
    seats_[rank].member = std::move(made.value());
  }
  void connect_all(const collective_shape& shape) {
    for (std::uint32_t rank = 0; rank < shape.world; ++rank)
      connect(shape, rank);
  }
  void reduce(std::uint32_t rank) {
    auto& at = seats_[rank];
    at.answer.reset();
    at.device->post([&at] {
      at.member->all_reduce([&at](expected<reduction> result) { at.answer = std::move(result); });
    });
  }
  void reduce_all() {
    for (std::uint32_t rank = 0; rank < world(); ++rank)
      reduce(rank);
  }

  bool run_one() { return order_.run_one(); }
  std::size_t run(std::size_t tasks_max = drawn_order::all) { return order_.run(tasks_max); }

private:
  drawn_order order_;
  manual_executor loop_{1U << 14U};
  loopback_hub hub_{loop_, {.bulk_piece_bytes = 256}};
  std::vector<seat> seats_;
};

} // namespace troupe::test
