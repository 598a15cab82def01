#include "tests/unit/train/doubles.hpp"

#include <cmath>

namespace troupe::testing {

float tiny_model::predict(const batch_view& batch, std::size_t sample,
                          const parameter_view& parameters) const {
  const auto weights = parameters.values(weights_);
  float sum = parameters.values(bias_)[0];
  for (std::size_t f = 0; f < features; ++f)
    sum += weights[f] * batch.inputs[sample * features + f];
  return 1.0F / (1.0F + std::exp(-sum));
}

shard_result tiny_model::train_shard(const batch_view& shard, const parameter_view& parameters,
                                     gradient_sink& gradients) {
  if (on_shard) on_shard();
  ++shards_computed;
  const auto weights = gradients.gradient(weights_);
  const auto bias = gradients.gradient(bias_);
  std::ranges::fill(weights, 0.0F);
  bias[0] = 0;
  double loss = 0;
  for (std::size_t sample = 0; sample < shard.samples; ++sample) {
    const float probability = predict(shard, sample, parameters);
    const bool label = shard.labels[sample] == 1;
    loss -= std::log(double{label ? probability : 1.0F - probability} + 1e-12);
    const float wrong = probability - (label ? 1.0F : 0.0F);
    for (std::size_t f = 0; f < features; ++f)
      weights[f] += wrong * shard.inputs[sample * features + f];
    bias[0] += wrong;
  }
  gradients.ready(weights_);
  if (!forget_bias) gradients.ready(bias_);
  return {loss};
}

evaluation tiny_model::evaluate(const batch_view& batch, const parameter_view& parameters) {
  evaluation result{.samples = batch.samples};
  for (std::size_t sample = 0; sample < batch.samples; ++sample) {
    const float probability = predict(batch, sample, parameters);
    const bool label = batch.labels[sample] == 1;
    result.loss_sum -= std::log(double{label ? probability : 1.0F - probability} + 1e-12);
    if ((probability > 0.5F) == label) ++result.correct;
  }
  return result;
}

} // namespace troupe::testing
