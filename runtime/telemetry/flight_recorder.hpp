// Flight recorder: notes every call between ranks, in the ring of the process's black box.
//
// Flow:     step engine -> [recorded communicator] -> communicator; each call -> flight ring
// Owns:     the list of the groups of the newest communicator.
// Runs on:  the device's executor, as the calls it decorates do; `groups` on any thread. It never blocks the
//           device, and allocates nothing for a call unless more of a group than ever are under way.
// Invariants: those of the seams it decorates (collective.hpp, rank_group.hpp), and
//   FL-1    a call is in the ring before the decorated one hears of it: who dies inside it is seen inside it.
//   FL-3    a part of a sum has a record of its own, in group `flight_parts_group`, numbered alike on all
//           ranks; its times are written when its sum ends, and are those at which it was begun and done.
//   FL-2    collectives of a group are numbered 1, 2, 3, ... alike on all its members; sends to a peer, and
//           receives from it, have numbers of their own. A call that was refused because too many are under
//           way (GR-6) has none, and is not compared.
// Why:      docs/design/0035-flight-recorder.md
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "runtime/base/ids.hpp"
#include "runtime/seams/clock.hpp"
#include "runtime/seams/collective.hpp"
#include "runtime/seams/flight_ring.hpp"

namespace troupe {

// Who is in a group, by rank of the generation.
struct flight_group {
  std::uint32_t group{0};
  std::vector<std::uint32_t> ranks;
  bool operator==(const flight_group&) const = default;
};
inline constexpr std::uint32_t flight_parts_group = 2;  // no group that is made by a split has this number
inline constexpr std::size_t flight_parts_max = 256;    // recorded of one sum
inline constexpr std::uint32_t flight_groups_max = 256; // listed of one communicator; more are recorded only

class flight_recorder {
public:
  // All outlive it, and what it makes. `step`: the one that is being computed.
  flight_recorder(flight_ring& ring, const std::atomic<std::uint64_t>& step, const clock_seam& clock);

  // The communicator, whose calls are noted from now on. The newest one made counts for `groups`.
  [[nodiscard]] std::unique_ptr<communicator> watch(std::unique_ptr<communicator> inner,
                                                    const collective_shape& shape);
  [[nodiscard]] std::vector<flight_group> groups() const;

private:
  class recorded_communicator;
  class recorded_group;

  [[nodiscard]] flight_record begin(generation_id generation, std::uint32_t group,
                                    const call_descriptor& what) const;
  void start(flight_record& what) const;
  void finish(flight_record& what, call_outcome outcome) const;
  void add_group(flight_group made);

  flight_ring& ring_;
  const std::atomic<std::uint64_t>& step_;
  const clock_seam& clock_;
  mutable std::mutex mutex_; // of the list alone, which grows when a group is made
  std::vector<flight_group> groups_;
};

} // namespace troupe
