#include "runtime/train/optimizer.hpp"

#include <array>
#include <cmath>

#include "runtime/base/invariant.hpp"
#include "runtime/train/exact_text.hpp"
#include "runtime/train/flat_math.hpp"
#include "runtime/train/update_rules.hpp"

namespace troupe {

namespace {

void check_sizes(const update& change, std::size_t slots) noexcept {
  invariant(change.gradient.size() == change.parameters.size() &&
                change.slots.size() == slots * change.parameters.size(),
            "OP-1: gradient and slots are as long as the parameters");
}

class sgd_optimizer final : public optimizer {
public:
  explicit sgd_optimizer(const sgd& settings)
      : settings_{settings} {}

  std::span<const std::string_view> slot_names() const override {
    static constexpr std::array<std::string_view, 1> names{"momentum"};
    return std::span{names}.first(settings_.momentum == 0 ? 0 : 1);
  }
  std::string text() const override {
    return "sgd(momentum=" + exact(settings_.momentum) + ",weight_decay=" + exact(settings_.weight_decay) +
           ",nesterov=" + (settings_.nesterov ? "1" : "0") + ")";
  }
  void apply(const update& change) const noexcept override {
    check_sizes(change, slot_names().size());
    if (settings_.momentum == 0)
      plain(change);
    else if (settings_.nesterov)
      with_momentum<true>(change);
    else
      with_momentum<false>(change);
  }

private:
  [[nodiscard]] sgd_rule rule(const update& change) const {
    return {change.scale, change.rate, settings_.momentum, settings_.weight_decay};
  }
  void plain(const update& change) const noexcept {
    float* const __restrict p = change.parameters.data();
    const float* const __restrict g = change.gradient.data();
    const auto one = rule(change);
    for (std::size_t i = 0; i < change.parameters.size(); ++i)
      one.plain(p[i], g[i]);
  }
  template <bool Nesterov>
  void with_momentum(const update& change) const noexcept {
    float* const __restrict p = change.parameters.data();
    float* const __restrict v = change.slots.data();
    const float* const __restrict g = change.gradient.data();
    const auto one = rule(change);
    for (std::size_t i = 0; i < change.parameters.size(); ++i)
      one.with_momentum<Nesterov>(p[i], v[i], g[i]);
  }

  sgd settings_;
};

class adamw_optimizer final : public optimizer {
public:
  explicit adamw_optimizer(const adamw& settings)
      : settings_{settings} {}

  std::span<const std::string_view> slot_names() const override {
    static constexpr std::array<std::string_view, 2> names{"mean", "variance"};
    return names;
  }
  std::string text() const override {
    return "adamw(beta1=" + exact(settings_.beta1) + ",beta2=" + exact(settings_.beta2) +
           ",epsilon=" + exact(settings_.epsilon) + ",weight_decay=" + exact(settings_.weight_decay) + ")";
  }
  void apply(const update& change) const noexcept override {
    check_sizes(change, 2);
    const std::size_t count = change.parameters.size();
    float* const __restrict p = change.parameters.data();
    float* const __restrict m = change.slots.data();
    float* const __restrict v = change.slots.data() + count;
    const float* const __restrict g = change.gradient.data();
    const auto one = adamw_rule_for(settings_, change);
    for (std::size_t i = 0; i < count; ++i)
      one.apply(p[i], m[i], v[i], g[i]);
  }

private:
  adamw settings_;
};

error bad(const char* setting, const char* accepted) {
  return {errc::bad_argument, std::string{"optimizer: "} + setting + " must be " + accepted};
}

bool is_fraction(float value) {
  return value >= 0 && value < 1;
}

bool is_finite_positive_or_zero(float value) {
  return std::isfinite(value) && value >= 0;
}

struct maker {
  using result = expected<std::unique_ptr<const optimizer>>;

  result operator()(const sgd& s) const {
    if (!is_fraction(s.momentum)) return bad("momentum", "at least 0 and below 1");
    if (!is_finite_positive_or_zero(s.weight_decay))
      return bad("weight_decay", "a finite number, at least 0");
    if (s.nesterov && s.momentum == 0) return bad("momentum", "above 0 with nesterov");
    return std::unique_ptr<const optimizer>{std::make_unique<const sgd_optimizer>(s)};
  }
  result operator()(const adamw& s) const {
    if (!is_fraction(s.beta1)) return bad("beta1", "at least 0 and below 1");
    if (!is_fraction(s.beta2)) return bad("beta2", "at least 0 and below 1");
    if (!std::isfinite(s.epsilon) || s.epsilon <= 0) return bad("epsilon", "a finite number above 0");
    if (!is_finite_positive_or_zero(s.weight_decay))
      return bad("weight_decay", "a finite number, at least 0");
    return std::unique_ptr<const optimizer>{std::make_unique<const adamw_optimizer>(s)};
  }
};

} // namespace

adamw_rule adamw_rule_for(const adamw& settings, const update& change) noexcept {
  const double correction1 = 1.0 - power(double{settings.beta1}, change.step + 1);
  const double correction2 = 1.0 - power(double{settings.beta2}, change.step + 1);
  return {.scale = change.scale,
          .beta1 = settings.beta1,
          .beta2 = settings.beta2,
          .epsilon = settings.epsilon,
          .keep = 1.0F - change.rate * settings.weight_decay,
          .rate = static_cast<float>(double{change.rate} / correction1),
          .root2 = static_cast<float>(1.0 / std::sqrt(correction2))};
}

expected<std::unique_ptr<const optimizer>> make_optimizer(const optimizer_settings& settings) {
  return std::visit(maker{}, settings);
}

} // namespace troupe
