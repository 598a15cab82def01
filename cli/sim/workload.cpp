#include "cli/sim/workload.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "runtime/base/limits.hpp"
#include "runtime/sim/sim_storage.hpp"

namespace troupe::sim {
namespace {

constexpr synthetic_shape train_data{.samples = 96, .features = 6, .classes = 4, .seed = 3, .noise = 0.4F};

// One linear layer, softmax, cross-entropy; plain loops in a fixed order.
class softmax_regression final : public model {
public:
  softmax_regression(model_context& context, std::size_t features, std::size_t classes)
      : features_{features}
      , classes_{classes}
      , weights_{context.declare("weights", {features, classes}, context.uniform("weights", 0.1F))}
      , bias_{context.declare("bias", {classes}, model_context::zeros())}
      , error_(classes) {}

  shard_result train_shard(const batch_view& shard, const parameter_view& parameters,
                           gradient_sink& sink) override {
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
  parameter weights_; // [features, classes]
  parameter bias_;    // [classes]
  std::vector<float> error_;
};

// Tells of every shard, and is the model otherwise.
class watched_model final : public model {
public:
  watched_model(std::unique_ptr<model> inner, shard_listener listener)
      : inner_{std::move(inner)}
      , listener_{std::move(listener)} {}
  shard_result train_shard(const batch_view& shard, const parameter_view& parameters,
                           gradient_sink& sink) override {
    listener_(shard);
    return inner_->train_shard(shard, parameters, sink);
  }
  evaluation evaluate(const batch_view& batch, const parameter_view& parameters) override {
    return inner_->evaluate(batch, parameters);
  }

private:
  std::unique_ptr<model> inner_;
  shard_listener listener_;
};

training_graph softmax_graph() {
  auto test_data = train_data;
  test_data.samples = 40;
  training_graph graph{{.name = "simulated", .summary = "Softmax regression in simulation."}};
  graph.dataset([](const job_settings&) { return synthetic_source(train_data); })
      .test([test_data](const job_settings&) { return synthetic_source(test_data); })
      .prefetch({.ready_batches = 3})
      .train([](model_context& context) -> std::unique_ptr<model> {
        return std::make_unique<softmax_regression>(context, train_data.features, train_data.classes);
      })
      .optimize(sgd{.momentum = 0.9F}, cosine{.peak = 0.2F, .warmup_steps = 5});
  return graph;
}

training_graph adamw_graph() {
  auto graph = softmax_graph();
  graph.optimize(adamw{}, cosine{.peak = 0.05F, .warmup_steps = 3}, 0.5F);
  return graph;
}

job_settings small_job() {
  job_settings settings;
  settings.steps = 50;
  settings.global_batch = 16;
  settings.shards = 8;
  settings.seed = 7;
  settings.checkpoint_every = 10;
  return settings;
}

std::vector<workload> make_workloads() {
  auto adamw_job = small_job();
  adamw_job.steps = 37;
  adamw_job.checkpoint_every = 7;
  adamw_job.keep = 2;
  auto accumulate_job = small_job();
  accumulate_job.steps = 23;
  accumulate_job.accumulate = 3;
  accumulate_job.checkpoint_every = 1;
  auto wide_job = small_job();
  wide_job.global_batch = wide_job.shards = limits::workers_max;
  wide_job.checkpoint_every = 25;
  auto ring_job = small_job();
  ring_job.collective = "ring";
  return {{"softmax", softmax_graph, small_job()},
          {"adamw", adamw_graph, adamw_job},
          {"accumulate", softmax_graph, accumulate_job},
          {"wide", softmax_graph, wide_job},
          {"ring", softmax_graph, ring_job}};
}

} // namespace

const std::vector<workload>& built_in_workloads() {
  static const auto all = make_workloads();
  return all;
}

const workload* find_workload(std::string_view name) {
  const auto& all = built_in_workloads();
  const auto found = std::ranges::find(all, name, &workload::name);
  return found == all.end() ? nullptr : &*found;
}

expected<void> check_workload(const workload& what) {
  if (!what.graph) return error{errc::bad_argument, "workload '" + what.name + "': needs a graph"};
  if (!what.settings.steps)
    return error{errc::bad_argument, "workload '" + what.name + "': its length is said in steps here"};
  if (auto valid = what.settings.validate(); !valid) return valid;
  return what.graph().validate();
}

training_graph make_graph(const workload& what, shard_listener listener) {
  auto graph = what.graph();
  if (!listener) return graph;
  graph.train([inner = graph.factory(), heard = std::move(listener)](model_context& context) {
    return std::unique_ptr<model>{std::make_unique<watched_model>(inner(context), heard)};
  });
  return graph;
}

expected<std::shared_ptr<const dataset>> open_data(const workload& what) {
  sim_storage disk;
  memory_staging stage;
  auto staged = what.graph().train_source()(what.settings).stage(disk, stage);
  if (!staged) return staged.failure();
  return staged->data;
}

} // namespace troupe::sim
