// Network sums: the ring collective in simulated processes, over their simulated network; or two levels of
// sums, of which the one inside a host is simulated memory.
//
// Flow:     worker -> [network sums] -> ring collective -> the process's share of its network
//           sums that somebody has -> the observer, as of simulated sums
// Owns:     which process is which incarnation; the numbers of sums. Outlives what it makes.
// Runs on:  the world's thread. A process that is dead tells nothing.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <tuple>

#include "runtime/sim/sim_collective.hpp"
#include "transports/ring/ring_collective.hpp"

namespace troupe::sim {

class network_sums {
public:
  // The seed decides the way of summing and the size of pieces, so that small sums go every way, and whether
  // in two levels where that fits.
  network_sums(std::uint64_t seed, sim_collective_observer& observer);
  [[nodiscard]] std::unique_ptr<collective> make_collective(sim_world& world, sim_process& owner,
                                                            incarnation_id self);

private:
  class watched_collective;
  class watched_communicator;
  // A process is in a generation once, whatever jobs number theirs.
  using sum_key = std::tuple<incarnation_id, generation_id, std::uint64_t>;
  [[nodiscard]] std::uint64_t number_of(const collective_shape& shape, const reduction& sum);

  ring_settings settings_;
  bool levels_;
  std::optional<sim_collective_hub> hosts_; // memory that processes of a host share; nobody looks at its sums
  sim_collective_observer& observer_;
  std::map<incarnation_id, std::int64_t> pids_;
  std::map<sum_key, std::uint64_t> numbers_;
};

} // namespace troupe::sim
