#include "cli/sim/workload.hpp"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

namespace troupe::sim {
namespace {

// One linear layer, softmax, cross-entropy; plain loops in a fixed order.
class softmax_regression final : public model {
public:
  softmax_regression(model_context& context, std::size_t features, std::size_t classes,
                     shard_listener listener)
      : features_{features}
      , classes_{classes}
      , listener_{std::move(listener)}
      , weights_{context.declare("weights", {features, classes}, context.uniform("weights", 0.1F))}
      , bias_{context.declare("bias", {classes}, model_context::zeros())}
      , error_(classes) {}

  shard_result train_shard(const batch_view& shard, const parameter_view& parameters,
                           gradient_sink& sink) override {
    if (listener_) listener_(shard);
    const auto to_weights = sink.gradient(weights_);
    const auto to_bias = sink.gradient(bias_);
    std::ranges::fill(to_weights, 0.0F);
    std::ranges::fill(to_bias, 0.0F);
    shard_result result;
    for (std::size_t i = 0; i < shard.samples; ++i) {
      const auto inputs = shard.inputs.subspan(i * features_, features_);
      result.loss_sum += forward(inputs, shard.labels[i], parameters);
      for (std::size_t c = 0; c < classes_; ++c) {
        to_bias[c] += error_[c];
        for (std::size_t f = 0; f < features_; ++f)
          to_weights[f * classes_ + c] += inputs[f] * error_[c];
      }
    }
    sink.ready(weights_);
    sink.ready(bias_);
    return result;
  }

  evaluation evaluate(const batch_view& batch, const parameter_view& parameters) override {
    evaluation result{.samples = batch.samples};
    for (std::size_t i = 0; i < batch.samples; ++i) {
      const auto label = batch.labels[i];
      result.loss_sum += forward(batch.inputs.subspan(i * features_, features_), label, parameters);
      error_[label] += 1.0F; // back to probabilities
      const auto best = std::ranges::max_element(error_) - error_.begin();
      if (best == label) ++result.correct;
    }
    return result;
  }

private:
  // Leaves softmax - one-hot in `error_`; returns the loss.
  double forward(std::span<const float> inputs, std::uint8_t label, const parameter_view& parameters) {
    const auto w = parameters.values(weights_);
    const auto b = parameters.values(bias_);
    std::ranges::copy(b, error_.begin());
    for (std::size_t f = 0; f < features_; ++f) {
      for (std::size_t c = 0; c < classes_; ++c)
        error_[c] += inputs[f] * w[f * classes_ + c];
    }
    const float largest = *std::ranges::max_element(error_);
    float sum = 0;
    for (auto& value : error_) {
      value = std::exp(value - largest);
      sum += value;
    }
    for (auto& value : error_)
      value /= sum;
    const double loss = -std::log(double{error_[label]});
    error_[label] -= 1.0F;
    return loss;
  }

  std::size_t features_;
  std::size_t classes_;
  shard_listener listener_;
  parameter weights_; // [features, classes]
  parameter bias_;    // [classes]
  std::vector<float> error_;
};

} // namespace

job_settings workload::settings() const {
  job_settings out;
  out.workers = workers;
  out.steps = steps;
  out.global_batch = global_batch;
  out.shards = shards;
  out.seed = seed;
  out.checkpoint_dir = checkpoint_directory;
  out.checkpoint_every = checkpoint_every;
  out.keep = keep;
  out.faults = faults;
  return out;
}

training_graph make_graph(const workload& what, shard_listener listener) {
  training_graph graph{{.name = "simulated", .summary = "Softmax regression in simulation."}};
  const auto shape = what.data;
  auto test_shape = shape;
  test_shape.samples = 40;
  graph.defaults(what.settings())
      .dataset([shape](const job_settings&) { return synthetic_source(shape); })
      .test([test_shape](const job_settings&) { return synthetic_source(test_shape); })
      .prefetch({.ready_batches = 3})
      .train([shape, heard = std::move(listener)](model_context& context) -> std::unique_ptr<model> {
        return std::make_unique<softmax_regression>(context, shape.features, shape.classes, heard);
      })
      .optimize(sgd{.momentum = 0.9F}, cosine{.peak = 0.2F, .warmup_steps = 5});
  return graph;
}

} // namespace troupe::sim
