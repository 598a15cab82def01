// Evaluation: a model over a whole dataset, in stored order, in batches of a fixed size.
//
// Flow:     dataset -> [evaluation] -> loss, accuracy
// Owns:     one batch of memory, touched once.
// Runs on:  the device's executor while no step is in flight, or anywhere with a model and parameters of its
//           own. `advance` computes one batch, so that a caller can share the executor; `run` does all.
// Fails:    the dataset's errors, and errc::actor_failed with the text of what the model throws.
// Invariants:
//   DE-1    each sample counts once; the result depends on parameters, dataset and batch size only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "runtime/base/buffer_pool.hpp"
#include "runtime/base/error.hpp"
#include "runtime/data/dataset.hpp"
#include "runtime/train/model.hpp"

namespace troupe {

[[nodiscard]] double mean_loss(const evaluation& result);
[[nodiscard]] double accuracy(const evaluation& result); // 0 to 1

class dataset_evaluation {
public:
  static constexpr std::size_t batch_samples_default = 512;

  // `from` outlives it. `batch_samples` > 0.
  explicit dataset_evaluation(const dataset& from, std::size_t batch_samples = batch_samples_default);

  void restart();
  [[nodiscard]] bool finished() const { return next_ == from_.samples(); }
  [[nodiscard]] expected<void> advance(model& kernels, const parameter_view& parameters);
  [[nodiscard]] const evaluation& result() const { return sum_; }

  [[nodiscard]] expected<evaluation> run(model& kernels, const parameter_view& parameters);

private:
  const dataset& from_;
  std::size_t batch_samples_;
  touched_memory memory_; // inputs, then labels
  std::uint64_t next_{0};
  evaluation sum_;
};

} // namespace troupe
