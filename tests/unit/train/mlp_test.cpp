#include <cmath>
#include <span>
#include <stdexcept>
#include <vector>

#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>

#include "examples/fashion_mnist/mlp.hpp"
#include "runtime/base/counter_rng.hpp"
#include "runtime/train/parameter_store.hpp"

namespace troupe {
namespace {

constexpr examples::mlp_shape tiny{.inputs = 6, .hidden = 5, .classes = 3};

class flat_sink final : public gradient_sink {
public:
  explicit flat_sink(const arena_layout& layout)
      : memory(layout.part_elements, NAN)
      , layout_{layout} {}
  std::span<float> gradient(parameter p) override {
    const auto& spec = layout_.parameters[p.index()];
    return std::span{memory}.subspan(spec.offset, spec.elements);
  }
  void ready(parameter) override { ++ready_count; }
  std::vector<float> memory;
  int ready_count{0};

private:
  const arena_layout& layout_;
};

struct fixture {
  explicit fixture(std::size_t sample_count, examples::mlp_shape shape = tiny)
      : samples{sample_count}
      , features{shape.inputs}
      , model{store, shape}
      , inputs(samples * features)
      , labels(samples) {
    store.freeze({});
    const counter_rng rng{21, 22};
    for (std::size_t i = 0; i < inputs.size(); ++i)
      inputs[i] = rng.uniform(i) - 0.5F;
    for (std::size_t i = 0; i < samples; ++i)
      labels[i] = static_cast<std::uint8_t>(i * 7 % shape.classes);
    for (std::size_t p = 0; p < 4; ++p) // biases that matter
      for (std::size_t i = 0; i < store.layout().parameters[p].elements; ++i)
        if (p % 2 == 1) store.arena()[store.layout().parameters[p].offset + i] = rng.uniform(1000 + i) - 0.5F;
  }
  [[nodiscard]] batch_view view() const { return {samples, features, inputs, labels, 0}; }

  std::size_t samples;
  std::size_t features;
  parameter_store store{3};
  examples::mlp model;
  std::vector<float> inputs;
  std::vector<std::uint8_t> labels;
};

// The same network in double, written down plainly.
double reference_loss(const fixture& f, const arena_layout& layout, const std::vector<double>& arena) {
  const auto at = [&](std::size_t p, std::size_t i) { return arena[layout.parameters[p].offset + i]; };
  double loss = 0;
  for (std::size_t s = 0; s < f.samples; ++s) {
    std::vector<double> hidden(tiny.hidden);
    for (std::size_t h = 0; h < tiny.hidden; ++h) {
      hidden[h] = at(1, h);
      for (std::size_t i = 0; i < tiny.inputs; ++i)
        hidden[h] += double{f.inputs[s * tiny.inputs + i]} * at(0, i * tiny.hidden + h);
      hidden[h] = std::max(0.0, hidden[h]);
    }
    double sum = 0;
    double own = 0;
    for (std::size_t c = 0; c < tiny.classes; ++c) {
      double logit = at(3, c);
      for (std::size_t h = 0; h < tiny.hidden; ++h)
        logit += hidden[h] * at(2, h * tiny.classes + c);
      sum += std::exp(logit);
      if (c == f.labels[s]) own = logit;
    }
    loss += std::log(sum) - own;
  }
  return loss;
}

TEST_CASE("mlp: gradients are the derivatives of the loss, in shards of one and of several chunks") {
  for (const std::size_t samples : {1U, 16U, 300U}) {
    fixture f{samples};
    flat_sink sink{f.store.layout()};
    const auto result = f.model.train_shard(f.view(), f.store, sink);
    CHECK(sink.ready_count == 4);

    const auto& layout = f.store.layout();
    std::vector<double> arena(f.store.parameters().begin(), f.store.parameters().end());
    CHECK(result.loss_sum == Catch::Approx(reference_loss(f, layout, arena)).epsilon(1e-5));
    for (const auto& spec : layout.parameters)
      for (std::size_t i = spec.offset; i < spec.offset + spec.elements; ++i) {
        constexpr double small = 1e-6;
        const double value = arena[i];
        arena[i] = value + small;
        const double above = reference_loss(f, layout, arena);
        arena[i] = value - small;
        const double below = reference_loss(f, layout, arena);
        arena[i] = value;
        const double slope = (above - below) / (2 * small);
        CHECK(double{sink.memory[i]} == Catch::Approx(slope).epsilon(1e-4).margin(1e-5 * double(samples)));
      }
  }
}

TEST_CASE("mlp: the same inputs give the same bits, from any model object (ML-1)") {
  for (const std::size_t samples : {16U, 128U}) {
    fixture a{samples, {}};
    fixture b{samples, {}};
    flat_sink of_a{a.store.layout()};
    flat_sink of_b{b.store.layout()};
    (void)b.model.evaluate(b.view(), b.store); // other calls between leave no trace
    const auto loss_a = a.model.train_shard(a.view(), a.store, of_a).loss_sum;
    const auto loss_b = b.model.train_shard(b.view(), b.store, of_b).loss_sum;
    CHECK(loss_a == loss_b);
    for (std::size_t p = 0; p < 4; ++p) {
      const auto of_one = of_a.gradient(parameter{p});
      CHECK(std::ranges::equal(of_one, of_b.gradient(parameter{p})));
    }
  }
}

TEST_CASE("mlp: evaluation counts what it gets right, and its loss is training's") {
  fixture f{300};
  flat_sink sink{f.store.layout()};
  const auto seen = f.model.evaluate(f.view(), f.store);
  CHECK(seen.samples == 300);
  CHECK(seen.loss_sum == f.model.train_shard(f.view(), f.store, sink).loss_sum);
  std::uint64_t correct = 0;
  for (std::size_t s = 0; s < 300; ++s)
    correct += f.model.evaluate({1, 6, std::span{f.inputs}.subspan(s * 6, 6), {&f.labels[s], 1}, s}, f.store)
                   .correct;
  CHECK(seen.correct == correct);
}

TEST_CASE("mlp: a batch that does not fit is refused with what is wrong") {
  fixture f{4};
  flat_sink sink{f.store.layout()};
  f.labels[2] = 3;
  CHECK_THROWS_AS(f.model.train_shard(f.view(), f.store, sink), std::invalid_argument);
  f.labels[2] = 0;
  CHECK_THROWS_AS(f.model.evaluate({4, 5, f.inputs, f.labels, 0}, f.store), std::invalid_argument);
}

} // namespace
} // namespace troupe
