#include "runtime/data/synthetic_dataset.hpp"

#include <bit>

#include "runtime/base/counter_rng.hpp"
#include "runtime/base/digest.hpp"
#include "runtime/base/invariant.hpp"
#include "runtime/data/limits.hpp"

namespace troupe {

synthetic_dataset::synthetic_dataset(const synthetic_shape& shape)
    : shape_{shape} {
  invariant(shape.samples >= 1 && shape.samples <= limits::dataset_samples_max && shape.features >= 1 &&
                shape.features <= limits::dataset_features_max && shape.classes >= 1 &&
                shape.classes <= limits::dataset_classes_max,
            "synthetic dataset: the shape is within the limits");
}

std::string synthetic_dataset::digest() const {
  const std::uint64_t words[] = {
      stream_of("synthetic dataset 1"),          shape_.samples, shape_.features, shape_.classes, shape_.seed,
      std::bit_cast<std::uint32_t>(shape_.noise)};
  return digest_of(std::as_bytes(std::span{words}));
}

expected<void> synthetic_dataset::read_into(std::uint64_t index, std::span<float> inputs) const {
  invariant(index < shape_.samples && inputs.size() == shape_.features,
            "dataset: a sample index lies inside the dataset");
  const counter_rng centres{shape_.seed, stream_of("synthetic centres")};
  const counter_rng noise{shape_.seed, stream_of("synthetic noise")};
  const std::uint64_t centre = std::uint64_t{label(index)} * shape_.features;
  for (std::uint32_t f = 0; f < shape_.features; ++f) {
    const float around = 2.0F * noise.uniform(index * shape_.features + f) - 1.0F;
    inputs[f] = centres.uniform(centre + f) + shape_.noise * around;
  }
  return {};
}

std::uint8_t synthetic_dataset::label(std::uint64_t index) const {
  return static_cast<std::uint8_t>(index % shape_.classes);
}

} // namespace troupe
