// Loopback groups: the rank groups of one loopback generation (runtime/policy/group_table.hpp does the work).
//
// Flow:     rank_group -> [group_table, under one lock] -> `done`, posted to the member's executor; or, where
//           it has none, on the member's thread, which blocks in the call until then.
// Owns:     the table of the first group, and what its members share.
// Runs on:  `start`, `split`: the member's executor or thread; `abort`: any thread.
// Fails:    as the seam says (runtime/seams/rank_group.hpp).
// Invariants: GR-1 to GR-6, GT-1.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "runtime/policy/group_table.hpp"
#include "runtime/seams/executor.hpp"
#include "runtime/seams/rank_group.hpp"

namespace troupe {

class loopback_groups : public std::enable_shared_from_this<loopback_groups> {
public:
  explicit loopback_groups(std::uint32_t world);

  // The first group, for `rank`; `device` null: its calls block.
  [[nodiscard]] std::unique_ptr<rank_group> join(std::uint32_t rank, executor* device);
  void abort() noexcept;

private:
  friend class loopback_rank_group;
  void deliver(std::uint32_t rank, group_outcome outcome);

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<executor*> devices_; // by rank
  std::shared_ptr<group_table> first_;
};

} // namespace troupe
