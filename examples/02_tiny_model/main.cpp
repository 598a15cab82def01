// A complete training program: a linear softmax classifier in plain loops, on samples computed from a seed.
//
//   build/bin/02_tiny_model --workers 2 --steps 200 --fault kill:worker=1@step=100
#include <algorithm>
#include <array>
#include <cmath>

#include "troupe/troupe.hpp"

namespace {

constexpr std::size_t features = 16;
constexpr std::size_t classes = 4;
using row = std::array<float, classes>;

class linear_softmax final : public troupe::model {
public:
  explicit linear_softmax(troupe::model_context& context)
      : weights_{context.declare("weights", {classes, features}, context.uniform("weights", 0.1F))}
      , bias_{context.declare("bias", {classes}, troupe::model_context::zeros())} {}

  // One logical shard: the sum of the losses, and the sum of the gradients over its samples.
  troupe::shard_result train_shard(const troupe::batch_view& shard, const troupe::parameter_view& parameters,
                                   troupe::gradient_sink& gradients) override {
    const auto dw = gradients.gradient(weights_);
    const auto db = gradients.gradient(bias_);
    std::ranges::fill(dw, 0.0F);
    std::ranges::fill(db, 0.0F);
    double loss = 0;
    for (std::size_t i = 0; i < shard.samples; ++i) {
      const auto x = shard.inputs.subspan(i * features, features);
      row error = probabilities(x, parameters);
      loss -= std::log(double{error[shard.labels[i]]} + 1e-12);
      error[shard.labels[i]] -= 1.0F;
      for (std::size_t c = 0; c < classes; ++c) {
        db[c] += error[c];
        for (std::size_t f = 0; f < features; ++f)
          dw[c * features + f] += error[c] * x[f];
      }
    }
    gradients.ready(weights_);
    gradients.ready(bias_);
    return {loss};
  }

  troupe::evaluation evaluate(const troupe::batch_view& batch,
                              const troupe::parameter_view& parameters) override {
    troupe::evaluation result{.samples = batch.samples};
    for (std::size_t i = 0; i < batch.samples; ++i) {
      const row p = probabilities(batch.inputs.subspan(i * features, features), parameters);
      result.loss_sum -= std::log(double{p[batch.labels[i]]} + 1e-12);
      if (std::ranges::max_element(p) - p.begin() == batch.labels[i]) ++result.correct;
    }
    return result;
  }

private:
  [[nodiscard]] row probabilities(std::span<const float> x, const troupe::parameter_view& parameters) const {
    const auto w = parameters.values(weights_);
    row p{};
    for (std::size_t c = 0; c < classes; ++c) {
      p[c] = parameters.values(bias_)[c];
      for (std::size_t f = 0; f < features; ++f)
        p[c] += w[c * features + f] * x[f];
    }
    const float largest = *std::ranges::max_element(p);
    float sum = 0;
    for (auto& value : p)
      sum += value = std::exp(value - largest);
    for (auto& value : p)
      value /= sum;
    return p;
  }

  troupe::parameter weights_, bias_; // [classes, features], [classes]
};

troupe::dataset_source samples(const troupe::job_settings&) {
  return troupe::synthetic_source({.samples = 8192, .features = features, .classes = classes, .noise = 0.7F});
}

} // namespace

int main(int argc, char** argv) {
  troupe::training_graph graph{{.name = "tiny_model", .summary = "Trains a linear softmax classifier."}};
  graph.dataset(samples).test(samples).train<linear_softmax>().optimize(
      troupe::sgd{.momentum = 0.9F}, troupe::cosine{.peak = 0.2F, .warmup_steps = 20});
  return troupe::run(graph, argc, argv);
}
