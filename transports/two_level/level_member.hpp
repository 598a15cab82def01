// Level member: one rank's part in a generation that sums in two levels.
//
// Flow:     contributions -> sum of the host (level inside) -> the host's first rank: sum over the hosts
//           (level between) -> broadcast inside the host -> the caller
// Owns:     a communicator of each level that this rank is in; room for the sum, and for the contributions
//           until the level inside is there.
// Runs on:  the device's executor; `abort` and `arrivals` on any thread; what peers say on the event loop. Of
//           the levels, one may block the device: its `abort` frees it.
// Fails:    errc::aborted; what a level says, which then is aborted for all.
// Invariants: CO-1 to CO-5 (collective.hpp), LP-1 (level_plan.hpp), and
//   LM-1    a sum goes on to the level between only once all nodes of the host are complete inside: so
//           between two sums of the level between all ranks have called, and ranks are at most one sum apart.
//   LM-2    whoever is aborted, or hears that another rank was, says so, once, to all it has a path to, and
//           ends both levels: nobody waits in one of them for a generation that has ended in the other.
//   LM-3    a sum whose contributions were written before the level inside was there is copied to it, parts
//           and all; later ones are written in its memory.
// Why:      docs/design/0047-sums-in-two-levels.md
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "runtime/base/buffer_pool.hpp"
#include "runtime/seams/collective.hpp"
#include "runtime/seams/executor.hpp"
#include "transports/two_level/level_plan.hpp"

namespace troupe {

class level_hub;

class level_member final : public std::enable_shared_from_this<level_member> {
public:
  // On the device, as what is written before the level inside is there: throws std::bad_alloc.
  level_member(std::shared_ptr<level_hub> hub, collective_shape shape, level_plan plan, rank_id rank);

  // --- the communicator's side ---
  [[nodiscard]] std::span<float> contribution(std::size_t index);
  void begin(element_range part, part_done done);
  void all_reduce(all_reduce_done done);
  void abort() noexcept; // any thread, like the next
  [[nodiscard]] std::vector<std::uint64_t> arrivals() const;
  void retire(); // the communicator is gone: nobody waits for an answer

  // --- making it; on the device ---
  void take_inside(expected<std::unique_ptr<communicator>> made);
  void take_between(std::unique_ptr<communicator> made) { between_ = std::move(made); }
  // What the others of this host connect to; the first rank's.
  void set_place(std::string place) { place_ = std::move(place); }

  // --- the hub's side ---
  [[nodiscard]] const collective_shape& shape() const { return shape_; }
  [[nodiscard]] const level_plan& plan() const { return plan_; }
  [[nodiscard]] std::uint32_t rank() const { return rank_; }
  [[nodiscard]] bool leads() const { return rank_ == host().first; }
  [[nodiscard]] const level_plan::host& host() const { return plan_.hosts[host_]; }
  [[nodiscard]] std::uint32_t host_index() const { return host_; }
  [[nodiscard]] const std::string& place() const { return place_; }
  [[nodiscard]] const std::vector<std::uint32_t>& neighbours() const { return neighbours_; }
  [[nodiscard]] bool ended() const { return ended_.load(); } // any thread
  // Which rank was the first to end, as far as it was told here, and how many sums it had called for.
  struct cause {
    std::uint32_t rank{0};
    std::uint64_t called{0};
  };
  [[nodiscard]] cause ended_by() const { return {ended_by_.load(), ended_at_.load()}; }
  void end(cause first); // any thread

private:
  void stop();
  [[nodiscard]] bool alone() const { return host().ranks == 1; }
  [[nodiscard]] bool stopped() const { return retired_ || ended(); }
  void sum_inside();
  void on_inside(expected<reduction> sum);
  void on_between(expected<reduction> sum);
  void hand_on(std::span<const float> sum);
  void fail(const error& why);
  void answer(expected<reduction> result);
  [[nodiscard]] error end_error() const;

  const std::shared_ptr<level_hub> hub_;
  const collective_shape shape_;
  const level_plan plan_;
  const std::uint32_t rank_;
  const std::uint32_t host_;
  const std::size_t slots_;                     // contributions of this rank
  const std::vector<std::uint32_t> neighbours_; // ranks that this one has a path to
  std::string place_;

  std::atomic<bool> ended_{false};
  std::atomic<bool> told_{false};       // who was the first
  std::atomic<std::uint32_t> ended_by_; // itself, until it is told
  std::atomic<std::uint64_t> ended_at_{0};
  std::atomic<std::uint64_t> called_{0};
  mutable std::mutex mutex_; // who asks for a level, or aborts it, may be on any thread
  std::unique_ptr<communicator> inside_;
  std::unique_ptr<communicator> between_; // the first rank's

  // Until the level inside is there (LM-3).
  struct begun_part {
    element_range part;
    part_done done;
  };
  touched_memory early_; // empty: never needed
  std::vector<begun_part> early_parts_;
  bool is_early_{false}; // the coming sum is written there

  touched_memory sum_;
  all_reduce_done done_; // device only, like the rest
  bool called_early_{false};
  bool retired_{false};
  std::uint64_t sums_{0};
  std::optional<error> failure_; // why this rank ended, if it was the one
};

} // namespace troupe
