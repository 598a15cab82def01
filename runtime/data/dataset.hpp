// Dataset: samples by index, immutable while anyone reads.
//
// A sample is `features` float32 inputs and one label in [0, classes). Reading is a pure function of the
// index: every process that holds a dataset of the same digest reads the same bits.
//
// Runs on:  any thread, also several at once.
// Fails:    `errc::bad_data` names the dataset and the sample; implementations may throw, the prefetch pump
//           turns that into an error.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "runtime/base/error.hpp"

namespace troupe {

class dataset {
public:
  virtual ~dataset() = default;
  [[nodiscard]] virtual std::string name() const = 0;
  [[nodiscard]] virtual std::uint64_t samples() const = 0;  // at least 1
  [[nodiscard]] virtual std::uint32_t features() const = 0; // at least 1
  [[nodiscard]] virtual std::uint32_t classes() const = 0;  // 1 .. limits::dataset_classes_max
  // 32 hex digits over everything training can see of the samples: shape, inputs, scaling, labels.
  [[nodiscard]] virtual std::string digest() const = 0;

  // Overwrites `inputs` [features] with sample `index` < samples().
  [[nodiscard]] virtual expected<void> read_into(std::uint64_t index, std::span<float> inputs) const = 0;
  [[nodiscard]] virtual std::uint8_t label(std::uint64_t index) const = 0;
  // Says that `index` is read next: an implementation may start to fetch it. Never blocks.
  virtual void expect(std::uint64_t) const {}
};

// Samples [first, first + count) in their stored order, for evaluation: `inputs` [count, features], `labels`
// [count]. errc::bad_argument when they reach beyond the end.
[[nodiscard]] expected<void> read_range(const dataset& from, std::uint64_t first, std::uint64_t count,
                                        std::span<float> inputs, std::span<std::uint8_t> labels);

} // namespace troupe
