// Collective seam: one communicator a generation, rebuilt when membership changes.
//
// The sum is canonical: the global batch is cut into S logical shards, and per-shard gradients are summed
// along one fixed binary tree over the shards (canonical_plan.hpp), whatever the number of ranks. A rank
// contributes one partial sum for each maximal tree node that it owns whole.
//
// Threads: `contribution`, `begin` and `all_reduce` on the device's executor; `abort` and `arrivals` from any
// thread.
//
// Invariants:
//   CO-1    the bits of a sum depend on the shards' values only: not on ranks, timing or slices.
//   CO-2    after `abort` every pending and later `all_reduce` completes with errc::aborted, in milliseconds,
//           unless its sum was already complete.
//   CO-3    a communicator never exchanges a byte with another generation's.
//   CO-4    a sum says which one of its communicator it is: 1, 2, 3, ... in order. The number is given by
//           the sum itself, so who was not in it cannot name it.
//   CO-5    a sum may be begun in parts, from the last element down: each part ends where the one before it
//           began. All ranks begin the same parts in the same order. Parts change neither bits nor numbers:
//           the sum is one, complete for all of its parts or for none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runtime/base/error.hpp"
#include "runtime/base/ids.hpp"
#include "runtime/base/task.hpp"
#include "runtime/seams/rank_group.hpp"
#include "runtime/seams/transport.hpp"

namespace troupe {

// Where a rank can be reached over the transport.
struct collective_member {
  incarnation_id incarnation;
  peer_address address;
  // Members of equal number share memory; 0: with the director, too. Only `prepare` looks at it.
  std::uint32_t host{0};
};

struct collective_shape {
  generation_id generation;
  std::uint32_t world{1};
  std::uint32_t shards{1};
  std::size_t elements{0}; // float32 elements of one contribution
  // Memory a rank for general operations (rank_group.hpp): larger ones go through it in pieces. 0: there are
  // none.
  std::size_t group_bytes{0};
  std::vector<collective_member> members{}; // by rank; a collective of one host does without
  // What the first `wire_elements` elements of every tree node's value are rounded to, by who computes it
  // (runtime/policy/wire_format.hpp), and may travel as: float32, float16, bfloat16. Contributions are
  // rounded by who writes them.
  element_type wire{element_type::float32};
  std::size_t wire_elements{0}; // a multiple of 16
  // Of the first `wire_elements` elements of a shard so many at most differ from zero (Top-K); 0: all may.
  // Values may then travel as lists of entries.
  std::size_t kept{0};
  // Where ranks are part of a larger world, or hosts of it: rank r holds the shards [cuts[r], cuts[r + 1]).
  // Empty: all ranks of a world, with even shares. Of what is held, each maximal node of the tree is a sum.
  std::vector<std::uint32_t> cuts{};
};

// Elements [begin, end).
struct element_range {
  std::size_t begin{0};
  std::size_t end{0};
  [[nodiscard]] constexpr std::size_t size() const { return end - begin; }
  constexpr bool operator==(const element_range&) const = default;
};

struct reduction {
  std::span<const float> sum; // valid until the next `begin` or `all_reduce`
  std::uint64_t number{0};    // CO-4
  std::size_t stride{0};      // elements to the next sum, where there are several (collective_shape::cuts)
  [[nodiscard]] std::span<const float> at(std::size_t index) const {
    return {sum.data() + index * stride, sum.size()};
  }
};

// errc::aborted when there is no sum.
using all_reduce_done = inline_function<void(expected<reduction>), 64>;

// A part of a sum is complete at this rank. Runs on whatever thread found that out: it only notes it.
using part_done = inline_function<void(), 32>;

class communicator {
public:
  virtual ~communicator() = default;
  // Memory [elements], 64-byte aligned, for the partial sum of this rank's `index`-th owned tree node
  // (order of canonical_plan::owned_nodes). Written by the caller between two all-reduces. After one it may
  // be other memory, with the same values: it is asked for again.
  [[nodiscard]] virtual std::span<float> contribution(std::size_t index) = 0;
  // The elements `part` of all contributions of this rank are final for the coming sum, which may start on
  // them while the others are still written (CO-5). `done` is dropped where parts are not summed by
  // themselves, as here, and where the sum ends without this one.
  virtual void begin(element_range /*part*/, part_done /*done*/) {}
  // Sums all contributions of all ranks: what was begun, and the rest. Every rank calls it in the same order.
  // `done` runs on the device's executor, possibly before this call returns.
  virtual void all_reduce(all_reduce_done done) = 0;
  virtual void abort() noexcept = 0; // any thread; idempotent
  // By rank, how many meeting points of this communicator it has reached; the rank that is behind is the one
  // that the others wait for. Empty where the implementation cannot tell.
  [[nodiscard]] virtual std::vector<std::uint64_t> arrivals() const { return {}; }
  // General operations between the same ranks; owned by the communicator. Null: the shape asked for none, or
  // the implementation has none.
  [[nodiscard]] virtual rank_group* group() { return nullptr; }
};

class collective {
public:
  virtual ~collective() = default;
  // Director's side: makes what the ranks of a new generation meet in; a descriptor for `connect`. The
  // meeting place lives until the next `prepare` or destruction.
  [[nodiscard]] virtual expected<std::string> prepare(const collective_shape& shape) = 0;
  // Director's side, of what was prepared last: as communicator::arrivals.
  [[nodiscard]] virtual std::vector<std::uint64_t> arrivals() const { return {}; }
  // Director's side, of what was prepared last, for reports: "shm". Empty: there is only one.
  [[nodiscard]] virtual std::string kind() const { return {}; }
  // Likewise: why it was not one that carries less between hosts. Empty: nothing does.
  [[nodiscard]] virtual std::string why() const { return {}; }
  // Worker's side. errc: aborted, storage_failed (memory), bad_argument (a descriptor that does not fit).
  [[nodiscard]] virtual expected<std::unique_ptr<communicator>>
  connect(const std::string& descriptor, const collective_shape& shape, rank_id rank) = 0;
  // What goes between hosts goes through `network`, which becomes its listener; null: no more. On the event
  // loop. A collective of one host does without.
  virtual void attach(transport* /*network*/) {}
  // Worker's side, on the event loop: told of a rank of the newest generation that can be reached no more, so
  // that its sums will never be complete. A collective of one host has nothing to tell.
  using unreachable_handler = std::function<void(generation_id, incarnation_id, const error& cause)>;
  virtual void set_unreachable_handler(unreachable_handler /*handler*/) {}
};

} // namespace troupe
