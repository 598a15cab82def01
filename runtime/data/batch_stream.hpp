// Batch stream: the ready batches between the prefetch pump and the step engine, and the credit back.
//
// Flow:     prefetch pump -> [batch stream] -> step engine; a credit (a returned buffer) goes the other way
// Owns:     `ready_batches` leased buffers, allocated when an assignment starts, never in a step.
// Runs on:  one producer (the reader executor) and one consumer (the device executor). Short locks, no
//           allocation, no waiting.
// Invariants:
//   BS-1    `try_next` hands out the batch of the generation and step asked for, or nothing: older ones are
//           dropped, newer ones stay.
//   BS-2    after a `try_next` that found nothing, `on_ready` is called once a batch is published.
//   PF-1    outstanding batches (being filled, ready, or with the consumer) never exceed the credit.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>

#include "runtime/base/bounded_queue.hpp"
#include "runtime/base/buffer_pool.hpp"
#include "runtime/base/task.hpp"
#include "runtime/data/batch.hpp"

namespace troupe {

class batch_stream {
public:
  using notification = inline_function<void(), 64>;

  // `ready_batches` in 1 .. limits::ready_batches_max is the credit: at 1 nothing is read ahead.
  batch_stream(std::uint32_t ready_batches, std::uint32_t features);
  batch_stream(const batch_stream&) = delete;
  batch_stream& operator=(const batch_stream&) = delete;

  // --- consumer ---
  // Never blocks. The caller owns the batch's buffer until `give_back`.
  [[nodiscard]] std::optional<batch> try_next(generation_id generation, step_id step);
  // The first step that the consumer was not handed yet, in the generation it last asked for: where a
  // restarted producer goes on. Any thread; the consumer may be further by then, which BS-1 makes harmless.
  [[nodiscard]] step_id next_step() const { return step_id{next_step_.load()}; }
  // Returns the buffer and wakes the producer. Also right for a batch of an ended generation.
  void give_back(batch&& used);
  // For a consumer that released `batch::memory` itself.
  void released();
  // `on_ready` runs on the reader's thread and must be cheap (post a task). Once this call returns, the one
  // set before is neither running nor called again. Not from inside a notification. Any thread.
  void set_on_ready(notification on_ready);

  // --- producer ---
  // Makes buffers for batches of up to `samples`; allocates only when they have to grow. Buffers lent before
  // stay valid and do not come back.
  void reserve(std::size_t samples);
  // An empty lease: the credit is used up. After `reserve`.
  [[nodiscard]] lease try_lend();
  [[nodiscard]] std::size_t credit_left() const;
  // Buffers that are being filled, ready, or with the consumer.
  [[nodiscard]] std::size_t lent() const;
  void publish(batch&& ready);
  void clear(); // drops what is ready
  // The producer to be told of returned buffers, on the consumer's thread. `detach` is ignored where another
  // producer has taken over; once it returns, `on_released` is neither running nor called again.
  void attach(const void* producer, notification on_released);
  void detach(const void* producer);

  [[nodiscard]] std::uint32_t features() const { return features_; }
  [[nodiscard]] std::uint32_t credit() const { return ready_batches_; }
  [[nodiscard]] std::size_t ready() const { return queue_.size(); } // any thread; out of date at once

private:
  const std::uint32_t ready_batches_;
  const std::uint32_t features_;
  bounded_queue<batch> queue_;
  std::optional<buffer_pool> pool_; // producer only
  std::atomic<bool> hungry_{false}; // the consumer found nothing and waits for `on_ready`
  std::atomic<std::uint64_t> next_step_{0};

  std::mutex ready_mutex_;
  notification on_ready_;
  std::mutex released_mutex_;
  notification on_released_;
  const void* producer_{nullptr};
};

} // namespace troupe
