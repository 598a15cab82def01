// Sample history: which samples went into which committed step, as the simulation saw it happen.
//
// Flow:     models (shards trained), collectives (sums made and taken), black boxes (steps applied)
//           -> [history] -> checkers
// A sum is of one global batch: of a step, or of a part of one where gradients are accumulated. It is
// committed once a process has applied it. Samples are known by their contents, not by what the batch says of
// itself. A sum with a value that is not finite must not be applied by anybody.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "cli/sim/workload.hpp"
#include "runtime/seams/process.hpp"
#include "runtime/sim/sim_collective.hpp"

namespace troupe::sim {

// The contents of a dataset's samples, by index.
using sample_contents = std::vector<std::uint64_t>;
[[nodiscard]] sample_contents contents_of(const dataset& data);

class history final : public sim_collective_observer {
public:
  history(const workload& what, std::shared_ptr<const sample_contents> samples);

  void watch(std::int64_t pid, std::shared_ptr<const black_box> box) { boxes_[pid] = std::move(box); }
  // A job that is no successor: its generations begin anew.
  void next_job() { ++job_; }
  void on_shard(std::int64_t pid, const batch_view& shard);
  void on_arrival(std::int64_t pid) override;
  void on_sum(std::uint64_t sum, const collective_shape& shape, std::span<const std::int64_t> pids,
              std::span<const float> values) override;
  void on_taken(std::uint64_t sum, std::int64_t pid) override;

  // Every batch exactly once in the history that counts, each with exactly its samples; no sum of another
  // batch, none twice in one generation. Findings, one line each; empty: right.
  [[nodiscard]] std::vector<std::string> check() const;
  // Batches that were applied, lost, and computed again.
  [[nodiscard]] std::uint64_t recomputed() const;
  [[nodiscard]] std::size_t sums() const { return sums_.size(); }

private:
  struct shard_record {
    std::uint64_t first_sample{0};
    std::vector<std::uint64_t> contents; // of its samples
  };
  struct sum_record {
    std::uint64_t job{0};
    generation_id generation;
    std::uint32_t world{0};
    std::vector<shard_record> shards;
    std::vector<std::int64_t> applied_by;
    bool finite{true};
  };
  [[nodiscard]] std::uint64_t batch_of(const sum_record& sum) const;
  void check_samples(const sum_record& sum, std::vector<std::string>& findings) const;

  workload what_;
  std::uint64_t job_{0};
  std::shared_ptr<const sample_contents> samples_;
  std::map<std::int64_t, std::shared_ptr<const black_box>> boxes_;
  std::map<std::int64_t, std::vector<shard_record>> trained_; // since the last arrival
  std::map<std::int64_t, std::vector<shard_record>> arrived_;
  std::map<std::int64_t, std::uint64_t> jobs_; // of each process: where it first arrived
  std::map<std::uint64_t, sum_record> sums_;   // by number, in the order in which they were made
  std::vector<std::string> findings_;          // seen on the way
};

} // namespace troupe::sim
