#include "runtime/data/idx_dataset.hpp"

#include <array>
#include <cstddef>
#include <span>
#include <vector>

#include "runtime/data/idx_stream.hpp"
#include "runtime/data/limits.hpp"

namespace troupe {
namespace {

constexpr std::uint32_t magic_images = 0x00000803; // unsigned bytes, 3 dimensions
constexpr std::uint32_t magic_labels = 0x00000801; // unsigned bytes, 1 dimension

std::string hex(std::uint32_t value) {
  constexpr const char* digits = "0123456789abcdef";
  std::string text = "0x";
  for (int shift = 28; shift >= 0; shift -= 4)
    text += digits[(value >> shift) & 15U];
  return text;
}

expected<std::uint32_t> read_number(idx_stream& from, std::string_view what) {
  std::array<std::byte, 4> bytes{};
  if (auto read = from.read(bytes, what); !read) return read.failure();
  std::uint32_t value = 0;
  for (const auto byte : bytes)
    value = value << 8 | std::to_integer<std::uint32_t>(byte);
  return value;
}

expected<void> read_magic(idx_stream& from, std::uint32_t accepted, std::string_view meaning) {
  const auto found = read_number(from, "header");
  if (!found) return found.failure();
  if (found.value() == accepted) return {};
  return from.bad("magic " + hex(found.value()) + ", accepted is " + hex(accepted) + " (" +
                  std::string{meaning} + ")");
}

expected<std::uint32_t> read_size(idx_stream& from, std::string_view of, std::uint64_t largest) {
  const auto found = read_number(from, "header");
  if (!found) return found.failure();
  if (found.value() >= 1 && found.value() <= largest) return found;
  return from.bad(std::to_string(found.value()) + " " + std::string{of} + ", accepted are 1 to " +
                  std::to_string(largest));
}

struct image_sizes {
  std::uint32_t samples;
  std::uint32_t features;
};

expected<image_sizes> read_image_sizes(idx_stream& from) {
  if (auto ok = read_magic(from, magic_images, "unsigned bytes, 3 dimensions"); !ok) return ok.failure();
  const auto samples = read_size(from, "images", limits::dataset_samples_max);
  if (!samples) return samples.failure();
  const auto rows = read_size(from, "rows", limits::dataset_features_max);
  if (!rows) return rows.failure();
  const auto columns = read_size(from, "columns", limits::dataset_features_max);
  if (!columns) return columns.failure();
  const std::uint64_t features = std::uint64_t{rows.value()} * columns.value();
  if (features > limits::dataset_features_max)
    return from.bad(std::to_string(features) + " pixels an image, accepted are 1 to " +
                    std::to_string(limits::dataset_features_max));
  const std::uint64_t bytes = samples.value() * features;
  // Asked before any memory is: a damaged size must not allocate gigabytes.
  if (bytes > limits::dataset_bytes_max)
    return from.bad(std::to_string(bytes) + " bytes of pixels, accepted are up to " +
                    std::to_string(limits::dataset_bytes_max));
  if (bytes > from.content_bytes_max())
    return from.bad("truncated: its header promises " + std::to_string(bytes) +
                    " bytes of pixels, a file of its size holds at most " +
                    std::to_string(from.content_bytes_max()));
  return image_sizes{samples.value(), static_cast<std::uint32_t>(features)};
}

expected<std::uint32_t> read_label_count(idx_stream& from) {
  if (auto ok = read_magic(from, magic_labels, "unsigned bytes, 1 dimension"); !ok) return ok.failure();
  return read_size(from, "labels", limits::dataset_samples_max);
}

expected<void> read_payload(idx_stream& from, std::span<std::uint8_t> into, const std::string& what) {
  if (auto read = from.read(std::as_writable_bytes(into), what); !read) return read;
  return from.expect_end(std::to_string(into.size()) + " bytes of " + what);
}

} // namespace

expected<std::shared_ptr<const staged_dataset>> stage_idx(storage& files, staging& into,
                                                          const idx_files& what) {
  auto images = idx_stream::open(files, what.images);
  if (!images) return images.failure();
  auto labels = idx_stream::open(files, what.labels);
  if (!labels) return labels.failure();
  const auto sizes = read_image_sizes(images.value());
  if (!sizes) return sizes.failure();
  const auto count = read_label_count(labels.value());
  if (!count) return count.failure();
  if (count.value() != sizes->samples)
    return error{errc::bad_data, "dataset files '" + what.images + "' and '" + what.labels +
                                     "': " + std::to_string(sizes->samples) + " images and " +
                                     std::to_string(count.value()) + " labels, accepted are equal numbers"};

  const pixel_description description{what.name, sizes->samples, sizes->features, what.classes, what.scaling};
  return stage_pixels(into, description,
                      [&](std::span<std::uint8_t> pixels, std::span<std::uint8_t> values) -> expected<void> {
                        // Labels first: the smaller file, the likelier mistake.
                        if (auto read = read_payload(labels.value(), values, "labels"); !read) return read;
                        const auto source = "dataset file '" + what.labels + "'";
                        if (auto ok = check_labels(values, what.classes, source); !ok) return ok;
                        return read_payload(images.value(), pixels, "pixels");
                      });
}

} // namespace troupe
