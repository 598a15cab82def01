#include "runtime/session/digest_queue.hpp"

#include <algorithm>
#include <utility>

#include "runtime/base/digest.hpp"

namespace troupe {

class digest_queue::computation {
public:
  computation(std::span<const std::byte> bytes, digest_told told)
      : left_{bytes}
      , told_{std::move(told)} {}
  // True: that was the last slice.
  [[nodiscard]] bool add(std::size_t slice_bytes) {
    const auto slice = left_.first(std::min(slice_bytes, left_.size()));
    hash_.add(slice);
    left_ = left_.subspan(slice.size());
    return left_.empty();
  }
  void tell() const { told_(hash_.finish()); }

private:
  std::span<const std::byte> left_;
  digest_told told_;
  digest_builder hash_;
};

digest_queue::digest_queue(executor& loop, std::size_t slice_bytes)
    : loop_{loop}
    , slice_bytes_{slice_bytes}
    , handle_{std::make_shared<digest_queue*>(this)} {}

digest_queue::handle digest_queue::begin(std::span<const std::byte> bytes, digest_told told) {
  auto added = std::make_shared<computation>(bytes, std::move(told));
  waiting_.push_back(added);
  post_turn();
  return added;
}

void digest_queue::post_turn() {
  if (waiting_.empty() || std::exchange(posted_, true)) return;
  loop_.post([weak = std::weak_ptr{handle_}] {
    if (const auto self = weak.lock()) (*self)->turn();
  });
}

void digest_queue::turn() {
  posted_ = false;
  handle next;
  while (next == nullptr && !waiting_.empty()) {
    next = waiting_.front().lock(); // DQ-2: nothing, if it was dropped
    waiting_.pop_front();
  }
  if (next == nullptr) return;
  const bool whole = next->add(slice_bytes_); // DQ-1
  if (!whole) waiting_.push_back(next);
  post_turn();
  if (whole) next->tell(); // last: whoever hears it may end this queue
}

} // namespace troupe
