#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>

#include "runtime/base/counter_rng.hpp"
#include "runtime/train/flat_math.hpp"
#include "runtime/train/optimizer.hpp"

namespace troupe {
namespace {

using Catch::Approx;

// A few updates of one flat array with reproducible gradients.
struct bench {
  std::unique_ptr<const optimizer> rule;
  std::vector<float> parameters = std::vector<float>(48, 0.5F);
  std::vector<float> slots;
  std::vector<float> gradient = std::vector<float>(48);

  explicit bench(const optimizer_settings& settings)
      : rule{std::move(make_optimizer(settings).value())}
      , slots(rule->slot_names().size() * 48) {}
  static float gradient_at(std::uint64_t step, std::size_t i) {
    return counter_rng{3, step}.uniform(i) - 0.5F;
  }
  void run(std::uint64_t steps, float scale, float rate) {
    for (std::uint64_t step = 0; step < steps; ++step) {
      for (std::size_t i = 0; i < gradient.size(); ++i)
        gradient[i] = gradient_at(step, i) / scale;
      rule->apply({parameters, slots, gradient, scale, rate, step});
    }
  }
};

std::string refusal(const optimizer_settings& settings) {
  const auto made = make_optimizer(settings);
  return made ? std::string{} : made.failure().text;
}

TEST_CASE("sgd: follows its formula, with momentum, Nesterov and weight decay") {
  for (const auto& s : {sgd{.momentum = 0}, sgd{.momentum = 0, .weight_decay = 0.1F}, sgd{},
                        sgd{.weight_decay = 0.01F}, sgd{.weight_decay = 0.01F, .nesterov = true}}) {
    bench made{s};
    CHECK(made.slots.size() == (s.momentum == 0 ? 0U : 48U));
    made.run(20, 0.25F, 0.1F);
    double p = 0.5;
    double v = 0;
    for (std::uint64_t step = 0; step < 20; ++step) {
      const double g = double{bench::gradient_at(step, 5)} + double{s.weight_decay} * p;
      v = double{s.momentum} * v + g;
      p -= 0.1 * (s.nesterov ? g + double{s.momentum} * v : v);
    }
    CHECK(double{made.parameters[5]} == Approx(p).epsilon(1e-5));
  }
}

TEST_CASE("adamw: follows its formula, bias correction included") {
  for (const auto& s : {adamw{}, adamw{.weight_decay = 0}, adamw{.beta1 = 0, .epsilon = 1e-3F}}) {
    bench made{s};
    made.run(20, 0.5F, 0.01F);
    double p = 0.5;
    double m = 0;
    double v = 0;
    for (std::uint64_t step = 0; step < 20; ++step) {
      const double g = double{bench::gradient_at(step, 7)};
      const auto t = static_cast<double>(step + 1);
      m = double{s.beta1} * m + (1 - double{s.beta1}) * g;
      v = double{s.beta2} * v + (1 - double{s.beta2}) * g * g;
      p *= 1 - 0.01 * double{s.weight_decay};
      p -= 0.01 * (m / (1 - std::pow(double{s.beta1}, t))) /
           (std::sqrt(v / (1 - std::pow(double{s.beta2}, t))) + double{s.epsilon});
    }
    CHECK(double{made.parameters[7]} == Approx(p).epsilon(1e-4));
  }
}

TEST_CASE("optimizer: an update is a pure function of its arguments (OP-1)") {
  for (const auto& settings : {optimizer_settings{sgd{.nesterov = true}}, optimizer_settings{adamw{}}}) {
    bench a{settings};
    bench b{settings};
    a.run(10, 0.5F, 0.1F);
    b.run(10, 0.5F, 0.1F);
    CHECK(a.parameters == b.parameters);
    CHECK(a.slots == b.slots);
  }
}

TEST_CASE("optimizer: zeros stay zero, so padding is never disturbed (OP-2)") {
  for (const auto& settings : {optimizer_settings{sgd{.weight_decay = 0.1F}}, optimizer_settings{adamw{}}}) {
    bench made{settings};
    std::ranges::fill(made.parameters, 0.0F);
    for (std::uint64_t step = 0; step < 3; ++step)
      made.rule->apply({made.parameters, made.slots, made.gradient, 1.0F, 0.1F, step});
    CHECK(made.parameters == std::vector<float>(48));
    CHECK(made.slots == std::vector<float>(made.slots.size()));
  }
}

TEST_CASE("optimizer: a bad setting is named with what is accepted") {
  CHECK(refusal(sgd{.momentum = 1}) == "optimizer: momentum must be at least 0 and below 1");
  CHECK(refusal(sgd{.momentum = 0, .nesterov = true}).find("momentum") != std::string::npos);
  CHECK(refusal(sgd{.weight_decay = -1}).find("weight_decay") != std::string::npos);
  CHECK(refusal(adamw{.beta2 = NAN}).find("beta2") != std::string::npos);
  CHECK(refusal(adamw{.epsilon = 0}).find("epsilon") != std::string::npos);
}

TEST_CASE("optimizer: its text tells settings apart") {
  const auto text = [](const optimizer_settings& s) { return make_optimizer(s).value()->text(); };
  CHECK(text(sgd{}) == "sgd(momentum=0.9,weight_decay=0,nesterov=0)");
  CHECK(text(sgd{}) != text(sgd{.momentum = 0.90001F}));
  CHECK(text(adamw{}) != text(adamw{.beta1 = 0.8F}));
}

TEST_CASE("sum of squares: is accurate, and has one order for every length") {
  std::vector<float> values(3 * 4096 + 160);
  const counter_rng rng{1, 1};
  double plain = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = rng.uniform(i) - 0.5F;
    plain += double{values[i]} * double{values[i]};
  }
  CHECK(sum_of_squares(values) == Approx(plain).epsilon(1e-13));
  CHECK(sum_of_squares({}) == 0.0);
  std::vector<double> lanes(16);
  for (std::size_t i = 0; i < 160; ++i)
    lanes[i % 16] += double{values[i]} * double{values[i]};
  for (std::size_t half = 8; half > 0; half /= 2)
    for (std::size_t lane = 0; lane < half; ++lane)
      lanes[lane] += lanes[lane + half];
  CHECK(sum_of_squares(std::span{values}.first(160)) == lanes[0]);
}

TEST_CASE("flat math: cosine and powers agree with the C library") {
  for (int i = 0; i <= 1000; ++i) {
    const double x = i / 1000.0;
    CHECK(std::abs(cos_pi(x) - std::cos(3.14159265358979323846 * x)) < 1e-15);
  }
  CHECK(power(0.999, 1000) == Approx(std::pow(0.999, 1000)).epsilon(1e-13));
  CHECK(power(0.5, 0) == 1.0);
}

TEST_CASE("flat math: one value that is not finite is found, wherever it is") {
  std::vector<float> values(8192, -3.0e38F);
  CHECK(all_finite(values));
  CHECK(all_finite({}));
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(),
                          -std::numeric_limits<float>::infinity()}) {
    for (const std::size_t at : {0U, 15U, 16U, 4097U, 8191U}) {
      const float before = std::exchange(values[at], bad);
      CHECK_FALSE(all_finite(values));
      values[at] = before;
    }
  }
  CHECK(all_finite(values));
}

} // namespace
} // namespace troupe
