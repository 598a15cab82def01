// Loopback collective: the collective seam inside one process, for threads, tests and simulation.
//
// Flow:     prepare (any collective of the hall) -> descriptor -> connect (any other) -> communicator
// Owns:     a hall holds the generations' rooms; a room holds all contributions and the sum.
// Runs on:  with an executor, `all_reduce` returns at once and `done` is posted there: nothing blocks, so a
//           single thread can drive all ranks. Without one, `all_reduce` blocks its thread until the last
//           rank has come.
// Fails:    as the seam says.
// Invariants: CO-1 CO-2 CO-3 (collective.hpp).
//   LC-1    the last rank to arrive adds everything; all ranks get that one sum, or all get errc::aborted.
//   LC-2    every `done` is called exactly once.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "runtime/seams/collective.hpp"
#include "runtime/seams/executor.hpp"

namespace troupe {

class loopback_room;

// Where the collectives of one process, real or simulated hosts alike, find each other. Outlives them.
class loopback_hall {
public:
  loopback_hall();
  ~loopback_hall();
  loopback_hall(const loopback_hall&) = delete;
  loopback_hall& operator=(const loopback_hall&) = delete;

private:
  friend class loopback_collective;
  [[nodiscard]] std::uint64_t open(std::shared_ptr<loopback_room> made);
  [[nodiscard]] std::shared_ptr<loopback_room> find(std::uint64_t number) const;
  void close(std::uint64_t number) noexcept; // aborts whoever is inside; unknown numbers are ignored

  mutable std::mutex mutex_;
  std::map<std::uint64_t, std::shared_ptr<loopback_room>> rooms_;
  std::uint64_t next_{1};
};

class loopback_collective final : public collective {
public:
  // `device` (not owned, outlives the communicators) runs the completions; null: `all_reduce` blocks.
  explicit loopback_collective(loopback_hall& hall, executor* device = nullptr);
  ~loopback_collective() override;
  loopback_collective(const loopback_collective&) = delete;
  loopback_collective& operator=(const loopback_collective&) = delete;

  [[nodiscard]] expected<std::string> prepare(const collective_shape& shape) override;
  [[nodiscard]] expected<std::unique_ptr<communicator>>
  connect(const std::string& descriptor, const collective_shape& shape, rank_id rank) override;

private:
  loopback_hall& hall_;
  executor* device_;
  std::uint64_t current_{0}; // the room of the last `prepare`
};

} // namespace troupe
