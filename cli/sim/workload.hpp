// Simulated workload: a program, as its `main` would declare it, and the settings of its command line.
//
// Flow:     workload -> training graph of one process; every shard trained -> [shard_listener]
// Owns:     nothing; the graph is the one that a program declares. Built in are small ones, softmax
//           regression on a synthetic dataset, that allow thousands of runs.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "actors/graph/training_graph.hpp"
#include "runtime/data/batch.hpp"

namespace troupe::sim {

struct workload {
  std::string name;
  std::function<training_graph()> graph; // called once in every simulated process
  job_settings settings;                 // workers, hosts and checkpoint directory are set by the simulator

  [[nodiscard]] std::uint64_t steps() const { return *settings.steps; }
  [[nodiscard]] std::uint64_t batches() const { return steps() * settings.accumulate; }
  [[nodiscard]] std::uint64_t samples_per_step() const {
    return std::uint64_t{settings.global_batch} * settings.accumulate;
  }
};

inline constexpr const char* checkpoint_directory = "/job/checkpoints";

// "softmax", "adamw", "accumulate", "buckets", "rounded", "wide", "top-k"; over the network: "ring",
// "top-k-ring".
[[nodiscard]] const std::vector<workload>& built_in_workloads();
[[nodiscard]] const workload* find_workload(std::string_view name);
// errc::bad_argument: a graph that is not whole, or a length that is not said in steps.
[[nodiscard]] expected<void> check_workload(const workload& what);

// Called for every shard that a process has trained.
using shard_listener = std::function<void(const batch_view&)>;

// The graph, whose model tells `listener` (may be empty) of every shard that it trains.
[[nodiscard]] training_graph make_graph(const workload& what, shard_listener listener);
// The training data as the processes see it.
[[nodiscard]] expected<std::shared_ptr<const dataset>> open_data(const workload& what);

} // namespace troupe::sim
