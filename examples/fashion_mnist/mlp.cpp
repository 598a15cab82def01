#include "examples/fashion_mnist/mlp.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>

#include <Eigen/Core>

namespace troupe::examples {

namespace {

using matrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using vector = Eigen::Matrix<float, 1, Eigen::Dynamic>;

Eigen::Index index(std::size_t value) {
  return static_cast<Eigen::Index>(value);
}

Eigen::Map<const matrix> view(std::span<const float> memory, std::size_t rows, std::size_t columns) {
  return {memory.data(), index(rows), index(columns)};
}
Eigen::Map<matrix> view(std::span<float> memory, std::size_t rows, std::size_t columns) {
  return {memory.data(), index(rows), index(columns)};
}

// `into` = or += left^T * right.
template <class Left, class Right>
void transposed_product(Eigen::Map<matrix> into, const Left& left, const Right& right, bool overwrite) {
  if (overwrite)
    into.noalias() = left.transpose() * right;
  else
    into.noalias() += left.transpose() * right;
}

// `into` = or += the sum of the rows, top to bottom.
void sum_rows(std::span<float> into, std::span<const float> values, std::size_t rows, bool overwrite) {
  if (overwrite) std::ranges::fill(into, 0.0F);
  for (std::size_t row = 0; row < rows; ++row)
    for (std::size_t i = 0; i < into.size(); ++i)
      into[i] += values[row * into.size() + i];
}

std::size_t round_up(std::size_t elements) {
  return (elements + 15) / 16 * 16;
}

} // namespace

struct mlp::weights {
  std::span<const float> w1, b1, w2, b2;
};

struct mlp::gradients {
  std::span<float> w1, b1, w2, b2;
};

mlp::mlp(model_context& context, mlp_shape shape)
    : shape_{shape} {
  const auto bound = [](std::size_t inputs) { return std::sqrt(6.0F / static_cast<float>(inputs)); };
  w1_ = context.declare("w1", {shape.inputs, shape.hidden}, context.uniform("w1", bound(shape.inputs)));
  b1_ = context.declare("b1", {shape.hidden}, model_context::zeros());
  w2_ = context.declare("w2", {shape.hidden, shape.classes}, context.uniform("w2", bound(shape.hidden)));
  b2_ = context.declare("b2", {shape.classes}, model_context::zeros());

  const auto hidden = round_up(chunk_samples * shape.hidden);
  const auto logits = round_up(chunk_samples * shape.classes);
  scratch_ = touched_memory{(2 * hidden + logits) * sizeof(float)};
  const auto memory = scratch_.as<float>();
  hidden_ = memory.first(hidden);
  hidden_error_ = memory.subspan(hidden, hidden);
  logits_ = memory.subspan(2 * hidden, logits);
}

void mlp::check(const batch_view& batch) const {
  if (batch.features != shape_.inputs)
    throw std::invalid_argument{"mlp: a sample has " + std::to_string(batch.features) + " features, not " +
                                std::to_string(shape_.inputs)};
  for (const auto label : batch.labels)
    if (label >= shape_.classes)
      throw std::invalid_argument{"mlp: label " + std::to_string(label) + " is not below " +
                                  std::to_string(shape_.classes)};
}

void mlp::forward(std::span<const float> inputs, std::size_t samples, const weights& w) {
  const auto x = view(inputs, samples, shape_.inputs);
  auto hidden = view(hidden_, samples, shape_.hidden);
  auto logits = view(logits_, samples, shape_.classes);
  hidden.noalias() = x * view(w.w1, shape_.inputs, shape_.hidden);
  hidden.rowwise() += Eigen::Map<const vector>{w.b1.data(), index(shape_.hidden)};
  hidden = hidden.cwiseMax(0.0F);
  logits.noalias() = hidden * view(w.w2, shape_.hidden, shape_.classes);
  logits.rowwise() += Eigen::Map<const vector>{w.b2.data(), index(shape_.classes)};
}

// Turns logits into their error (softmax - one-hot); returns the sum of the losses.
double mlp::loss_and_error(std::span<const std::uint8_t> labels) {
  double loss = 0;
  for (std::size_t sample = 0; sample < labels.size(); ++sample) {
    const auto row = logits_.subspan(sample * shape_.classes, shape_.classes);
    const float largest = *std::ranges::max_element(row);
    const float of_label = row[labels[sample]] - largest;
    float sum = 0;
    for (auto& value : row) {
      value = std::exp(value - largest);
      sum += value;
    }
    for (auto& value : row)
      value /= sum;
    row[labels[sample]] -= 1.0F;
    loss += double{std::log(sum) - of_label};
  }
  return loss;
}

void mlp::backward(std::span<const float> inputs, std::size_t samples, const weights& w,
                   const gradients& into, bool first, gradient_sink* told) {
  const auto x = view(inputs, samples, shape_.inputs);
  const auto hidden = view(std::span<const float>{hidden_}, samples, shape_.hidden);
  const auto error = view(std::span<const float>{logits_}, samples, shape_.classes);
  auto hidden_error = view(hidden_error_, samples, shape_.hidden);

  transposed_product(view(into.w2, shape_.hidden, shape_.classes), hidden, error, first);
  sum_rows(into.b2, logits_, samples, first);
  if (told != nullptr) told->ready(w2_), told->ready(b2_);
  hidden_error.noalias() = error * view(w.w2, shape_.hidden, shape_.classes).transpose();
  hidden_error = (hidden.array() > 0.0F).select(hidden_error, 0.0F);
  transposed_product(view(into.w1, shape_.inputs, shape_.hidden), x, hidden_error, first);
  sum_rows(into.b1, hidden_error_, samples, first);
  if (told != nullptr) told->ready(w1_), told->ready(b1_);
}

shard_result mlp::train_shard(const batch_view& shard, const parameter_view& parameters,
                              gradient_sink& sink) {
  check(shard);
  const weights w{parameters.values(w1_), parameters.values(b1_), parameters.values(w2_),
                  parameters.values(b2_)};
  const gradients into{sink.gradient(w1_), sink.gradient(b1_), sink.gradient(w2_), sink.gradient(b2_)};
  double loss = 0;
  for (std::size_t begin = 0; begin < shard.samples; begin += chunk_samples) {
    const auto samples = std::min(chunk_samples, shard.samples - begin);
    const auto inputs = shard.inputs.subspan(begin * shape_.inputs, samples * shape_.inputs);
    forward(inputs, samples, w);
    loss += loss_and_error(shard.labels.subspan(begin, samples));
    const bool last = begin + samples == shard.samples;
    backward(inputs, samples, w, into, begin == 0, last ? &sink : nullptr);
  }
  return {loss};
}

evaluation mlp::evaluate(const batch_view& batch, const parameter_view& parameters) {
  check(batch);
  const weights w{parameters.values(w1_), parameters.values(b1_), parameters.values(w2_),
                  parameters.values(b2_)};
  evaluation result{.samples = batch.samples};
  for (std::size_t begin = 0; begin < batch.samples; begin += chunk_samples) {
    const auto samples = std::min(chunk_samples, batch.samples - begin);
    const auto labels = batch.labels.subspan(begin, samples);
    forward(batch.inputs.subspan(begin * shape_.inputs, samples * shape_.inputs), samples, w);
    for (std::size_t sample = 0; sample < samples; ++sample) {
      const auto row = logits_.subspan(sample * shape_.classes, shape_.classes);
      const auto best = std::ranges::max_element(row) - row.begin();
      if (best == labels[sample]) ++result.correct;
    }
    result.loss_sum += loss_and_error(labels);
  }
  return result;
}

} // namespace troupe::examples
