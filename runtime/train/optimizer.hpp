// Optimizers: deterministic updates of flat arrays; their memory lies in the parameter store's arena.
//
// Flow:     reduced gradient (sum over samples) -> scale -> [optimizer] -> parameters, slots
// Owns:     nothing but its settings: all state is in the slots it is given, so a copy of the arena is a copy
//           of the optimizer.
// Runs on:  the device's executor. No allocation, no exception.
// Invariants:
//   OP-1    an update is a pure function of (parameters, slots, gradient, scale, rate, step), elementwise.
//   OP-2    where parameter, slot and gradient are zero they stay zero: padding is never disturbed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "runtime/base/error.hpp"
#include "runtime/train/update_rules.hpp"

namespace troupe {

// v = momentum * v + g; p -= rate * (nesterov ? g + momentum * v : v), where g includes weight_decay * p.
// Source: Sutskever et al., ICML 2013, in the form that PyTorch uses. One slot, none without momentum.
struct sgd {
  float momentum{0.9F};
  float weight_decay{0.0F};
  bool nesterov{false};
};

// Source: Loshchilov, Hutter, "Decoupled weight decay regularization", ICLR 2019. Two slots.
struct adamw {
  float beta1{0.9F};
  float beta2{0.999F};
  float epsilon{1e-8F};
  float weight_decay{0.01F};
};

using optimizer_settings = std::variant<sgd, adamw>;

struct update {
  std::span<float> parameters;
  std::span<float> slots;          // all slots, one after another, each as long as `parameters`
  std::span<const float> gradient; // as long as `parameters`
  float scale{1};                  // the gradient counts times this
  float rate{0};
  std::uint64_t step{0}; // of the state before the update; the first is 0
};

class optimizer {
public:
  virtual ~optimizer() = default;
  [[nodiscard]] virtual std::span<const std::string_view> slot_names() const = 0;
  [[nodiscard]] virtual std::string text() const = 0; // kind and settings, exact: for digests and manifests
  virtual void apply(const update& change) const noexcept = 0;
};

// What AdamW does to each element in this step; for kernels that update elsewhere.
[[nodiscard]] adamw_rule adamw_rule_for(const adamw& settings, const update& change) noexcept;

// errc::bad_argument names the setting and what is accepted.
[[nodiscard]] expected<std::unique_ptr<const optimizer>> make_optimizer(const optimizer_settings& settings);

} // namespace troupe
