// Multi-layer perceptron 784-256-10: ReLU, softmax cross-entropy. The example's model, and a model to copy.
//
// Flow:     logical shard -> [forward, backward] -> gradients of w1, b1, w2, b2 (sums over the samples)
// Owns:     scratch for `chunk_samples` samples, allocated once; a shard of any size goes through in chunks.
// Runs on:  the device's executor, one call at a time; one thread, no allocation.
// Fails:    std::invalid_argument for a batch whose features or labels do not fit.
// Invariants:
//   ML-1    the same inputs give the same bits on every machine that runs this build: matrix products are
//           Eigen's with block sizes fixed at compile time (CMakeLists.txt), not taken from the processor.
//   ML-2    no call allocates: packing goes to the stack (at most EIGEN_STACK_ALLOCATION_LIMIT a block).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "runtime/base/buffer_pool.hpp"
#include "runtime/train/model.hpp"

namespace troupe::examples {

struct mlp_shape {
  std::size_t inputs{784};
  std::size_t hidden{256};
  std::size_t classes{10};
};

class mlp final : public model {
public:
  static constexpr std::size_t chunk_samples = 128;

  explicit mlp(model_context& context, mlp_shape shape = {});

  shard_result train_shard(const batch_view& shard, const parameter_view& parameters,
                           gradient_sink& gradients) override;
  evaluation evaluate(const batch_view& batch, const parameter_view& parameters) override;

private:
  struct weights;
  struct gradients;
  void check(const batch_view& batch) const;
  void forward(std::span<const float> inputs, std::size_t samples, const weights& w);
  double loss_and_error(std::span<const std::uint8_t> labels);
  // Tells `told`, unless null, of each gradient that is complete.
  void backward(std::span<const float> inputs, std::size_t samples, const weights& w, const gradients& into,
                bool first, gradient_sink* told);

  mlp_shape shape_;
  parameter w1_; // [inputs, hidden]
  parameter b1_; // [hidden]
  parameter w2_; // [hidden, classes]
  parameter b2_; // [classes]
  touched_memory scratch_;
  std::span<float> hidden_;       // [chunk, hidden]: activations after ReLU
  std::span<float> hidden_error_; // [chunk, hidden]
  std::span<float> logits_;       // [chunk, classes]: logits, then their error
};

} // namespace troupe::examples
