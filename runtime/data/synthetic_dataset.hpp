// Synthetic dataset: samples computed from a seed; nothing is stored. For simulation, tests and examples.
//
// Each class has a centre in the unit cube; a sample is its class's centre and noise around it, so a linear
// model learns it and a loss that does not fall is a bug. Labels go round: index % classes.
#pragma once

#include "runtime/data/dataset.hpp"

namespace troupe {

struct synthetic_shape {
  std::uint64_t samples{64};
  std::uint32_t features{8};
  std::uint32_t classes{4};
  std::uint64_t seed{1};
  float noise{0.25F}; // half the width of the uniform noise around the centre
};

class synthetic_dataset final : public dataset {
public:
  explicit synthetic_dataset(const synthetic_shape& shape);

  [[nodiscard]] std::string name() const override { return "synthetic"; }
  [[nodiscard]] std::uint64_t samples() const override { return shape_.samples; }
  [[nodiscard]] std::uint32_t features() const override { return shape_.features; }
  [[nodiscard]] std::uint32_t classes() const override { return shape_.classes; }
  [[nodiscard]] std::string digest() const override; // of the shape: all else follows from it
  [[nodiscard]] expected<void> read_into(std::uint64_t index, std::span<float> inputs) const override;
  [[nodiscard]] std::uint8_t label(std::uint64_t index) const override;

private:
  synthetic_shape shape_;
};

} // namespace troupe
