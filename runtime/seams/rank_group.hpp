// Rank group: general operations between the ranks of one generation, or between some of them.
//
// Every member issues the same calls in the same order; a send and its receive are one call of two members,
// in order between them. A send may wait for its receive: of two that exchange, one receives first. Several
// calls may be under way, up to a limit (GR-6); they complete in the order issued. The canonical sum of
// gradients is not here: it belongs to the communicator (collective.hpp).
//
// Threads: `start` on the device's executor, where `done` runs, possibly before `start` returns; `abort` from
//          any thread.
// Owns:    nothing of what a call names: `in` and `out` outlive its `done`.
// Fails:   aborted (GR-2).
//          bad_argument: a call that does not fit the group; it counts as not called. Or it does not fit what
//          the others called: everyone in that call gets this error, with the first rank that differs and
//          both calls, nothing has moved, and the group is of no more use: later calls are aborted
//          (over NCCL with the whole generation).
//          no_credit: too many calls are under way (GR-6); it counts as not called. Wait for a `done`.
// Invariants:
//   GR-1    every `done` is called exactly once, in the order of the calls; that of GR-6 at once.
//   GR-2    after `abort` of the communicator every pending and later call ends with errc::aborted, in
//           milliseconds, unless it was already complete.
//   GR-3    what a call that failed has written to `out` means nothing; `in` is as it was.
//   GR-4    the bits of a reduction depend on the members' values and their ranks only: values are added
//           along one binary tree over the ranks (canonical_plan.hpp, a shard a rank), left + right. float16
//           and bfloat16 are added as float32 and rounded once, to nearest even. Integers wrap. A NaN in a
//           result is the quiet one without sign and payload.
//   GR-5    a group never exchanges a byte with another one, nor with another generation's.
//   GR-6    of one member, at most limits::group_calls_max calls of a group are under way: made, splits among
//           them, and not done yet. One more ends with errc::no_credit, before `start` returns. Where calls
//           block there is one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "runtime/base/error.hpp"
#include "runtime/base/task.hpp"
#include "runtime/seams/element_type.hpp"

namespace troupe {

// What `elements` counts, and how many elements `in` and `out` have, with W members:
enum class group_call : std::uint8_t {
  all_reduce,     // in [elements], out [elements]: everybody's values, reduced
  reduce_scatter, // in [W x elements], out [elements]: part `rank` of what all_reduce would give
  all_gather,     // in [elements], out [W x elements]: everybody's values, by rank
  broadcast,      // in [elements] at rank `peer`, out [elements] at all
  all_to_all,     // in [W x elements], out [W x elements]: part r goes to rank r, comes from rank r
  send,           // in [elements], to rank `peer`
  receive,        // out [elements], from rank `peer`
  barrier,        // nothing moves; done when all have called
};

struct group_operation {
  group_call call{group_call::barrier};
  element_type type{element_type::float32};
  reduce_op op{reduce_op::sum};
  std::size_t elements{0};
  std::uint32_t peer{0}; // rank within the group
  // May be the very memory of `out` where both have the same size. What a call has no use for is not looked
  // at.
  std::span<const std::byte> in{};
  std::span<std::byte> out{};
};

using group_done = inline_function<void(expected<void>), 64>;

class rank_group {
public:
  virtual ~rank_group() = default;
  [[nodiscard]] virtual std::uint32_t rank() const = 0;
  [[nodiscard]] virtual std::uint32_t world() const = 0;
  virtual void start(const group_operation& what, group_done done) = 0;
  // The members `ranks` (of this group, ascending, without repetition), as a group of their own; ranks there
  // are positions here. Called by every member of this group, in order with its other calls; null for who is
  // not among them. Lives no longer than this group. errc: bad_argument, no_credit (more than
  // limits::rank_groups_max were made, or GR-6), aborted. Where nothing may block, that the members' ranks
  // differ is told by later calls of both groups.
  [[nodiscard]] virtual expected<std::unique_ptr<rank_group>> split(std::span<const std::uint32_t> ranks) = 0;
};

} // namespace troupe
