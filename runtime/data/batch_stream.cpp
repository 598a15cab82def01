#include "runtime/data/batch_stream.hpp"

#include <utility>
#include <vector>

#include "runtime/base/invariant.hpp"
#include "runtime/base/planted_bug.hpp"
#include "runtime/base/probe.hpp"
#include "runtime/data/limits.hpp"

namespace troupe {

batch_stream::batch_stream(std::uint32_t ready_batches, std::uint32_t features)
    : ready_batches_{ready_batches}
    , features_{features}
    , queue_{ready_batches} {
  invariant(ready_batches >= 1 && ready_batches <= limits::ready_batches_max,
            "batch stream: the credit is within its limits");
}

std::optional<batch> batch_stream::try_next(generation_id generation, step_id step) {
  const auto wanted = std::pair{generation, step};
  const auto place_of = [](const batch& b) { return std::pair{b.generation, b.step}; };
  next_step_.store(step.value());
  // The second look closes the gap between finding nothing and asking to be told (BS-2).
  for (const bool last_look : {false, true}) {
    if (last_look) hungry_.store(true);
    while (auto found = queue_.try_pop_if([&](const batch& b) { return place_of(b) <= wanted; })) {
      if (place_of(*found) == wanted) {
        hungry_.store(false);
        next_step_.store(step.next().value());
        return found;
      }
      probe<"stream.old_batch_dropped">::hit();
      if (TROUPE_PLANTED("stream.lease_kept")) {
        static auto* kept = new std::vector<lease>; // reachable: no leak of memory, only of leases
        kept->push_back(std::move(found->memory));
      }
      give_back(std::move(*found));
    }
  }
  return std::nullopt;
}

void batch_stream::give_back(batch&& used) {
  used.memory.release();
  released();
}

void batch_stream::released() {
  const std::lock_guard lock{released_mutex_};
  if (on_released_) on_released_();
}

void batch_stream::set_on_ready(notification on_ready) {
  const std::lock_guard lock{ready_mutex_};
  on_ready_ = std::move(on_ready);
}

void batch_stream::reserve(std::size_t samples) {
  const std::size_t bytes = batch::bytes_for(samples, features_);
  if (!pool_ || pool_->bytes_each() < bytes) pool_.emplace(ready_batches_, bytes);
}

lease batch_stream::try_lend() {
  invariant(pool_.has_value(), "batch stream: buffers are reserved before they are lent");
  return pool_->try_lend();
}

std::size_t batch_stream::credit_left() const {
  return pool_ ? pool_->available() : 0;
}

std::size_t batch_stream::lent() const {
  return pool_ ? pool_->count() - pool_->available() : 0;
}

void batch_stream::publish(batch&& ready) {
  invariant(queue_.try_push(std::move(ready)), "PF-1: outstanding batches never exceed the credit");
  if (!hungry_.exchange(false)) return;
  const std::lock_guard lock{ready_mutex_};
  if (on_ready_) on_ready_();
}

void batch_stream::clear() {
  queue_.clear();
}

void batch_stream::attach(const void* producer, notification on_released) {
  const std::lock_guard lock{released_mutex_};
  producer_ = producer;
  on_released_ = std::move(on_released);
}

void batch_stream::detach(const void* producer) {
  const std::lock_guard lock{released_mutex_};
  if (producer_ != producer) return;
  producer_ = nullptr;
  on_released_ = {};
}

} // namespace troupe
