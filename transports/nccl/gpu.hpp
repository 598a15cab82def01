// GPU: what this room asks of one device and its NCCL library, one call each. Nothing blocks but `abort`.
//
// Real: loaded_gpu (through the loaded libraries). Tests: a behavioural fake in virtual time.
//
// Threads: all calls come from the device's owner thread (NC-8), but `abort` (an expendable thread) and
//          `make_unique_id` (the director, which needs no device).
// Order:   copies, sums, reductions, exchanges and marks run on the device in the order they are issued (one
//          stream).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "runtime/base/error.hpp"
#include "transports/nccl/kernel_api.hpp"
#include "transports/nccl/nccl_api.hpp"

namespace troupe {

// What a call of NCCL, or a look at a communicator, said.
struct nccl_answer {
  nccl::result code{nccl::result::success};
  std::string why; // of a failure
  [[nodiscard]] bool done() const { return code == nccl::result::success; }
  [[nodiscard]] bool under_way() const { return code == nccl::result::in_progress; }
  [[nodiscard]] bool failed() const { return !done() && !under_way(); }
};

// One part of an exchange. Parts between two ranks in one direction meet in their order, also those of
// exchanges that have other peers.
struct transfer {
  std::uint32_t peer{0};
  const void* from{nullptr}; // sent, if `to` is null
  void* to{nullptr};
  std::size_t bytes{0}; // not 0
};

// Of the host it is pinned: the device copies by itself. What it copies from and what it copies to are never
// the same memory: a copy that an abort has overtaken may still come when the next generation has both.
enum class memory_place : std::uint8_t { device, host_source, host_target };

class gpu {
public:
  virtual ~gpu() = default;
  [[nodiscard]] virtual const nccl::features& has() const = 0;
  [[nodiscard]] virtual expected<nccl::unique_id> make_unique_id() = 0;

  // --- communicators; none of these waits for a peer ---
  // `into` is set before the meeting is complete, so that an abort can reach it.
  [[nodiscard]] virtual nccl_answer init(nccl::comm& into, const nccl::unique_id& id, std::uint32_t world,
                                         std::uint32_t rank) = 0;
  [[nodiscard]] virtual nccl_answer shrink(nccl::comm parent, std::span<const int> without,
                                           nccl::comm& into) = 0;
  [[nodiscard]] virtual nccl_answer revoke(nccl::comm which) = 0;
  [[nodiscard]] virtual nccl_answer finalize(nccl::comm which) = 0;
  [[nodiscard]] virtual nccl_answer destroy(nccl::comm which) = 0;
  [[nodiscard]] virtual nccl_answer status(nccl::comm which) = 0;
  // All of them in one group. May block, and may never return.
  [[nodiscard]] virtual nccl_answer abort(std::span<const nccl::comm> all) = 0;

  // --- operations ---
  // All parts in one group: no part waits for another one.
  [[nodiscard]] virtual nccl_answer exchange(nccl::comm on, std::span<const transfer> parts) = 0;
  // own [elements] -> all [world x elements], in place where own lies at its place.
  [[nodiscard]] virtual nccl_answer all_gather(nccl::comm on, const float* own, float* all,
                                               std::size_t elements) = 0;

  // --- the device; errc::device_failed ---
  [[nodiscard]] virtual expected<void> sum(const kernels::sum_arguments& what) = 0;
  [[nodiscard]] virtual expected<void> reduce(const kernels::reduce_arguments& what) = 0;
  // Between memory allocated here, on either place: in order with everything else. From or to other memory of
  // the host: waits for what was issued before, so only where nothing can hang.
  [[nodiscard]] virtual expected<void> copy(void* to, const void* from, std::size_t bytes) = 0;
  [[nodiscard]] virtual expected<void> mark() = 0;    // behind everything issued so far; one mark at a time
  [[nodiscard]] virtual expected<bool> reached() = 0; // the mark; never waits
  // Zeroed: the device's in stream order, the host's at once. errc::out_of_memory.
  [[nodiscard]] virtual expected<std::byte*> allocate(std::size_t bytes, memory_place where) = 0;
  virtual void release(std::byte* memory, memory_place where) = 0;
};

} // namespace troupe
