// Group table: general operations between members that live in one process; a machine without threads.
//
// Each member has a queue of calls. A call of all members is carried out once it heads every queue, a call of
// two once it heads theirs. What goes in is copied when the call is made, what comes out when the outcome is
// delivered: a member may be gone in between, as processes in simulation are.
//
// Flow:     start -> [queues] -> outcome, handed to the sink -> (the member's executor) -> deliver
// Owns:     the queues of one group, and the tables of groups split off from it.
// Runs on:  one thread at a time, whoever calls; the sink is called inside.
// Fails:    as the seam says (runtime/seams/rank_group.hpp).
// Invariants: GR-1 to GR-6.
//   GT-1    each call has one outcome; a member's outcomes leave in the order of its calls.
// Why:      docs/design/0033-rank-groups.md
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "runtime/base/error.hpp"
#include "runtime/policy/group_call.hpp"
#include "runtime/policy/rank_reduction.hpp"
#include "runtime/seams/rank_group.hpp"

namespace troupe {

using shared_bytes = std::shared_ptr<const std::vector<std::byte>>;
using shared_count = std::shared_ptr<std::atomic<std::uint32_t>>;

struct group_outcome {
  group_done done;
  expected<void> result;
  std::span<std::byte> out;
  shared_bytes bytes;       // for `out`; null: nothing
  shared_count under_way{}; // the member's calls
  // Where and while `out` is the member's: copies, and calls `done`.
  void deliver();
};

// `rank` is the one in the first group, for members of split ones too.
using group_sink = std::function<void(std::uint32_t rank, group_outcome outcome)>;

class group_table {
public:
  group_table(std::uint32_t world, group_sink sink);

  [[nodiscard]] std::uint32_t world() const { return static_cast<std::uint32_t>(queues_.size()); }
  // errc::no_credit: nothing may be started nor split (GR-6). Nothing of a call has an outcome then.
  [[nodiscard]] expected<void> room(std::uint32_t rank) const;
  void start(std::uint32_t rank, const group_operation& what, group_done done);
  // The table of the members `ranks`, at once; `agreed` when all have called, as any other call.
  [[nodiscard]] expected<std::shared_ptr<group_table>>
  split(std::uint32_t rank, std::span<const std::uint32_t> ranks, group_done agreed);
  // Every pending and later call of this group, and of those split off from it, ends with errc::aborted.
  void abort();

private:
  struct call {
    call_signature shown;
    group_operation what;
    std::vector<std::byte> in;
    group_done done;
    expected<void> refused{}; // did not fit the group: waits for its turn only (GR-1)
  };
  struct origin { // what split-off tables share with the first one
    group_sink sink;
    std::uint32_t groups{1};
  };
  group_table(std::shared_ptr<origin> shared, std::vector<std::uint32_t> first_ranks);

  void add(std::uint32_t rank, call made);
  void advance();
  [[nodiscard]] bool refuse_heads();
  [[nodiscard]] bool run_pair();
  [[nodiscard]] bool run_together();
  void carry_over(std::uint32_t from, std::uint32_t to);
  [[nodiscard]] std::vector<shared_bytes> compute(const call& first);
  [[nodiscard]] shared_bytes reduced(const call& first, std::size_t part);
  [[nodiscard]] shared_bytes gathered(std::size_t part, std::size_t bytes) const;
  void finish_head(std::uint32_t rank, expected<void> result, shared_bytes bytes = nullptr);
  void close();
  void abort_splits(std::size_t from);
  void end_misfit(std::span<const std::uint32_t> ranks, const error& why);
  [[nodiscard]] call& head(std::uint32_t rank) { return queues_[rank].front(); }
  [[nodiscard]] std::shared_ptr<group_table> open_split(std::size_t number,
                                                        std::span<const std::uint32_t> ranks);

  std::shared_ptr<origin> shared_;
  std::vector<std::uint32_t> first_ranks_; // by rank here: the rank in the first group
  std::vector<std::deque<call>> queues_;   // by rank
  std::vector<shared_count> under_way_;    // by rank: made, and the outcome not delivered
  rank_reduction reduction_;
  struct split_off {
    call_signature shown;
    std::shared_ptr<group_table> table; // null: there were too many
  };
  std::vector<split_off> splits_;        // in the order of the calls
  std::size_t agreed_splits_{0};         // of these, by all
  std::vector<std::size_t> split_calls_; // by rank
  bool aborted_{false};
};

} // namespace troupe
