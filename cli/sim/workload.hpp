// Simulated workload: softmax regression on a synthetic dataset, small enough for thousands of runs.
//
// Flow:     workload -> training graph of one process; every shard trained -> [shard_listener]
// Owns:     nothing; the graph is the one that a program would declare.
#pragma once

#include <cstdint>
#include <functional>

#include "actors/graph/training_graph.hpp"
#include "runtime/data/batch.hpp"

namespace troupe::sim {

struct workload {
  std::uint32_t workers{3};
  std::uint64_t steps{50};
  std::uint64_t checkpoint_every{10};
  std::uint32_t keep{3};
  std::uint32_t global_batch{16};
  std::uint32_t shards{8};
  std::uint64_t seed{7}; // of the training; the simulation has its own
  synthetic_shape data{.samples = 96, .features = 6, .classes = 4, .seed = 3, .noise = 0.4F};
  fault_plan faults{};

  [[nodiscard]] job_settings settings() const;
};

inline constexpr const char* checkpoint_directory = "/job/checkpoints";

// Called for every shard that a process has trained.
using shard_listener = std::function<void(const batch_view&)>;

// `listener` may be empty.
[[nodiscard]] training_graph make_graph(const workload& what, shard_listener listener);

} // namespace troupe::sim
