#include "runtime/data/dataset.hpp"

#include "runtime/base/invariant.hpp"

namespace troupe {

expected<void> read_range(const dataset& from, std::uint64_t first, std::uint64_t count,
                          std::span<float> inputs, std::span<std::uint8_t> labels) {
  const std::uint64_t samples = from.samples();
  if (first > samples || count > samples - first)
    return error{errc::bad_argument, "dataset '" + from.name() + "': samples " + std::to_string(first) +
                                         " to " + std::to_string(first + count) + " asked of " +
                                         std::to_string(samples)};
  const std::size_t features = from.features();
  invariant(inputs.size() == count * features && labels.size() == count,
            "read_range: the memory has the size of the samples asked for");
  for (std::uint64_t i = 0; i < count; ++i) {
    if (i + 1 < count) from.expect(first + i + 1);
    if (auto read = from.read_into(first + i, inputs.subspan(i * features, features)); !read) return read;
    labels[i] = from.label(first + i);
  }
  return {};
}

} // namespace troupe
