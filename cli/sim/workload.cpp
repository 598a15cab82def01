#include "cli/sim/workload.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "runtime/base/limits.hpp"
#include "runtime/sim/sim_storage.hpp"

namespace troupe::sim {
namespace {

constexpr synthetic_shape train_data{.samples = 96, .features = 6, .classes = 4, .seed = 3, .noise = 0.4F};

// The weights of one feature, in the memory that `memory_of` gives for a parameter.
template <class Memory>
auto row_of(std::span<const parameter> weights, std::size_t feature, std::size_t classes, Memory memory_of) {
  return weights.size() > 1 ? memory_of(weights[feature])
                            : memory_of(weights[0]).subspan(feature * classes, classes);
}

// One linear layer, softmax, cross-entropy; plain loops in a fixed order. Its weights are one parameter, or
// one for each feature.
class softmax_regression final : public model {
public:
  softmax_regression(model_context& context, std::size_t features, std::size_t classes, bool by_feature)
      : features_{features}
      , classes_{classes}
      , error_(classes) {
    if (!by_feature)
      weights_.push_back(context.declare("weights", {features, classes}, context.uniform("weights", 0.1F)));
    for (std::size_t f = 0; by_feature && f < features; ++f) {
      const auto name = "weights" + std::to_string(f);
      weights_.push_back(context.declare(name, {classes}, context.uniform(name, 0.1F)));
    }
    bias_ = context.declare("bias", {classes}, model_context::zeros());
  }

  shard_result train_shard(const batch_view& shard, const parameter_view& parameters,
                           gradient_sink& sink) override {
    const auto to_bias = sink.gradient(bias_);
    for (const auto one : weights_)
      std::ranges::fill(sink.gradient(one), 0.0F);
    std::ranges::fill(to_bias, 0.0F);
    shard_result result;
    for (std::size_t i = 0; i < shard.samples; ++i) {
      const auto inputs = shard.inputs.subspan(i * features_, features_);
      result.loss_sum += forward(inputs, shard.labels[i], parameters);
      for (std::size_t c = 0; c < classes_; ++c) {
        to_bias[c] += error_[c];
        for (std::size_t f = 0; f < features_; ++f)
          row_of(weights_, f, classes_, [&](parameter p) { return sink.gradient(p); })[c] +=
              inputs[f] * error_[c];
      }
    }
    sink.ready(bias_);
    for (auto i = weights_.size(); i-- > 0;)
      sink.ready(weights_[i]);
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
    const auto b = parameters.values(bias_);
    std::ranges::copy(b, error_.begin());
    for (std::size_t f = 0; f < features_; ++f) {
      const auto w = row_of(weights_, f, classes_, [&](parameter p) { return parameters.values(p); });
      for (std::size_t c = 0; c < classes_; ++c)
        error_[c] += inputs[f] * w[c];
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
  std::vector<parameter> weights_; // one [features, classes], or [classes] each
  parameter bias_;                 // [classes]
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

training_graph softmax_graph(bool by_feature) {
  auto test_data = train_data;
  test_data.samples = 40;
  training_graph graph{{.name = "simulated", .summary = "Softmax regression in simulation."}};
  graph.dataset([](const job_settings&) { return synthetic_source(train_data); })
      .test([test_data](const job_settings&) { return synthetic_source(test_data); })
      .prefetch({.ready_batches = 3})
      .train([by_feature](model_context& context) -> std::unique_ptr<model> {
        return std::make_unique<softmax_regression>(context, train_data.features, train_data.classes,
                                                    by_feature);
      })
      .optimize(sgd{.momentum = 0.9F}, cosine{.peak = 0.2F, .warmup_steps = 5});
  return graph;
}

training_graph whole_graph() {
  return softmax_graph(false);
}

training_graph layered_graph() {
  return softmax_graph(true);
}

training_graph adamw_graph() {
  auto graph = whole_graph();
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
  auto bucket_job = small_job();
  bucket_job.bucket = 64; // each parameter by itself
  auto rounded_job = bucket_job;
  rounded_job.wire = "bfloat16";
  auto wide_job = small_job();
  wide_job.global_batch = wide_job.shards = limits::workers_max;
  wide_job.checkpoint_every = 25;
  auto ring_job = small_job();
  ring_job.collective = "ring";
  auto sparse_job = small_job();
  sparse_job.top_k = 0.3;
  auto sparse_ring_job = sparse_job;
  sparse_ring_job.collective = "ring";
  return {{"softmax", whole_graph, small_job()},
          {"adamw", adamw_graph, adamw_job},
          {"accumulate", whole_graph, accumulate_job},
          {"buckets", layered_graph, bucket_job},
          {"rounded", layered_graph, rounded_job},
          {"wide", whole_graph, wide_job},
          {"ring", whole_graph, ring_job},
          {"top-k", whole_graph, sparse_job},
          {"top-k-ring", layered_graph, sparse_ring_job}};
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
