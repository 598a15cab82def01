// Digest queue: digests of large memory, computed on the event loop without holding it up.
//
// Owns:     computations that are under way; whoever keeps the handle decides how long.
// Runs on:  the event loop, a slice at a time. Several computations take turns.
// Invariants:
//   DQ-1    a task of the loop hashes one slice at most, however much waits.
//   DQ-2    memory whose computation was told, or whose handle was dropped, is read no more.
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "runtime/seams/executor.hpp"
#include "runtime/session/limits.hpp"

namespace troupe {

class digest_queue {
public:
  using digest_told = std::function<void(const std::string& digest)>; // as digest_of (runtime/base)
  class computation;
  using handle = std::shared_ptr<computation>; // dropped: nothing is told

  explicit digest_queue(executor& loop, std::size_t slice_bytes = limits::session_digest_slice_bytes);
  digest_queue(const digest_queue&) = delete;
  digest_queue& operator=(const digest_queue&) = delete;

  // `bytes` stay as they are until `told` was called, in a later task, or the handle was dropped.
  [[nodiscard]] handle begin(std::span<const std::byte> bytes, digest_told told);

private:
  void turn();
  void post_turn();

  executor& loop_;
  std::size_t slice_bytes_;
  std::deque<std::weak_ptr<computation>> waiting_;
  bool posted_{false};
  std::shared_ptr<digest_queue*> handle_; // what a posted turn finds this object by
};

} // namespace troupe
