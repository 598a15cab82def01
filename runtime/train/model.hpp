// Model: what a user's training program implements.
//
// A model declares its parameters once; Troupe owns their memory (one contiguous arena of float32), their
// gradients, the optimizer state, and their way through collectives and checkpoints.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/data/batch.hpp"

namespace troupe {

// Initial value of element `index` of a parameter; a pure function, so that every rank computes the same.
using initializer = std::function<float(std::uint64_t index)>;

struct parameter_spec {
  std::string name;
  std::vector<std::size_t> shape;
  std::size_t elements{0};
  std::size_t offset{0}; // in elements, into the arena and into the gradient; a multiple of 16 (64 bytes)
};

// Names a declared parameter; valid for the model that declared it.
class parameter {
public:
  parameter() = default;
  explicit parameter(std::size_t index)
      : index_{index} {}
  [[nodiscard]] std::size_t index() const { return index_; }

private:
  std::size_t index_{0};
};

// Given to a model's constructor: the only place where parameters are declared.
class model_context {
public:
  virtual ~model_context() = default;
  // `shape` is row-major. Throws std::invalid_argument for a duplicate or empty name, or an empty shape.
  virtual parameter declare(std::string name, std::vector<std::size_t> shape, initializer initial) = 0;
  [[nodiscard]] virtual std::uint64_t seed() const = 0;
  // Uniform in [-bound, bound), a pure function of (seed, name, index).
  [[nodiscard]] virtual initializer uniform(std::string_view name, float bound) const = 0;
  [[nodiscard]] static initializer zeros() {
    return [](std::uint64_t) { return 0.0F; };
  }
};

// Read access to parameters [elements], by handle. Borrowed memory, stable for the model's life.
class parameter_view {
public:
  virtual ~parameter_view() = default;
  [[nodiscard]] virtual std::span<const float> values(parameter p) const = 0;
};

// Where a model writes the gradient of one logical shard: the sum over the shard's samples (not the mean).
class gradient_sink {
public:
  virtual ~gradient_sink() = default;
  // Memory [elements] to be overwritten whole; uninitialised on entry.
  [[nodiscard]] virtual std::span<float> gradient(parameter p) = 0;
  // Says that `p` is complete, in the order in which backward finishes; enables overlap.
  virtual void ready(parameter p) = 0;
};

struct shard_result {
  double loss_sum{0}; // over the shard's samples
};

struct evaluation {
  double loss_sum{0};
  std::uint64_t correct{0};
  std::uint64_t samples{0};
};

class model {
public:
  virtual ~model() = default;
  // Forward and backward over one logical shard. Deterministic: the same inputs give the same bits.
  // Throwing fails the worker's actor, not the process.
  virtual shard_result train_shard(const batch_view& shard, const parameter_view& parameters,
                                   gradient_sink& gradients) = 0;
  virtual evaluation evaluate(const batch_view& batch, const parameter_view& parameters) = 0;
};

} // namespace troupe
