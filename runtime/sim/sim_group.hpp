// Simulated groups: the rank groups of one simulated generation (runtime/policy/group_table.hpp does the
// work); outcomes reach their members after a delay drawn from the seed, in order.
//
// A dead member calls nothing and is told nothing: only `abort` ends the wait for it. While something lies
// between two members nobody has an outcome, and an abort takes it from all. An abort that meets outcomes
// under way takes them from nobody, or, where aborts split (sim_collective.hpp), from whom the seed says.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "runtime/policy/group_table.hpp"
#include "runtime/seams/rank_group.hpp"
#include "runtime/sim/sim_world.hpp"

namespace troupe {

class sim_collective_hub;

class sim_groups : public std::enable_shared_from_this<sim_groups> {
public:
  sim_groups(sim_collective_hub& hub, std::uint32_t world);

  // The first group, for `rank`.
  [[nodiscard]] std::unique_ptr<rank_group> join(std::uint32_t rank, sim_process& owner);
  void abort();

private:
  struct member {
    sim_process* process{nullptr}; // the world keeps ended ones
    std::deque<group_outcome> leaving;
    std::size_t held{0}; // the last of these wait until all members reach each other
  };
  void deliver(std::uint32_t rank, group_outcome outcome);
  void release(std::uint32_t rank, time_point begun);
  void hand_over(std::uint32_t rank);
  [[nodiscard]] time_point reunion(time_point begun) const;

  sim_collective_hub& hub_;
  std::vector<member> members_; // by rank
  std::shared_ptr<group_table> first_;
  bool aborted_{false};
};

} // namespace troupe
