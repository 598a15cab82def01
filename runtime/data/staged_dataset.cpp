#include "runtime/data/staged_dataset.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>
#include <type_traits>
#include <utility>

#include "runtime/base/digest.hpp"
#include "runtime/base/invariant.hpp"
#include "runtime/base/limits.hpp"
#include "runtime/data/limits.hpp"

namespace troupe {
namespace {

constexpr std::array<char, 8> magic{'T', 'R', 'P', 'I', 'X', 'E', 'L', 'S'};
constexpr std::uint32_t header_version = 1;
constexpr std::size_t page_bytes = 4096;

// First page of the staged memory, in this machine's byte order: it never leaves the host.
struct header {
  std::array<char, 8> magic;
  std::uint32_t version;
  std::uint32_t classes;
  std::uint64_t samples;
  std::uint32_t features;
  std::uint32_t name_bytes;
  float mean;
  float deviation;
  std::uint64_t labels_offset;
  std::uint64_t pixels_offset;
  std::uint64_t total_bytes;
  std::array<char, 32> digest;
  std::array<char, limits::name_bytes_max> name;
};
static_assert(std::is_trivially_copyable_v<header> && sizeof(header) <= page_bytes);

const header& header_of(std::span<const std::byte> bytes) {
  return *reinterpret_cast<const header*>(bytes.data());
}

header layout_of(const pixel_description& what) {
  header h{};
  h.magic = magic;
  h.version = header_version;
  h.classes = what.classes;
  h.samples = what.samples;
  h.features = what.features;
  h.name_bytes = static_cast<std::uint32_t>(what.name.size());
  h.mean = what.scaling.mean;
  h.deviation = what.scaling.deviation;
  h.labels_offset = page_bytes;
  h.pixels_offset = (page_bytes + what.samples + page_bytes - 1) / page_bytes * page_bytes;
  h.total_bytes = h.pixels_offset + what.samples * what.features;
  std::copy(what.name.begin(), what.name.end(), h.name.begin());
  return h;
}

expected<void> check_description(const pixel_description& what) {
  const auto refuse = [&what](const std::string& text) {
    return error{errc::bad_argument, "dataset '" + what.name + "': " + text};
  };
  const auto range = [](std::uint64_t value, std::string_view of, std::uint64_t largest) {
    return std::to_string(value) + " " + std::string{of} + ", accepted are 1 to " + std::to_string(largest);
  };
  if (what.name.size() > limits::name_bytes_max)
    return refuse("the name has " + std::to_string(what.name.size()) + " bytes, accepted are up to " +
                  std::to_string(limits::name_bytes_max));
  if (what.samples < 1 || what.samples > limits::dataset_samples_max)
    return refuse(range(what.samples, "samples", limits::dataset_samples_max));
  if (what.features < 1 || what.features > limits::dataset_features_max)
    return refuse(range(what.features, "features", limits::dataset_features_max));
  if (what.classes < 1 || what.classes > limits::dataset_classes_max)
    return refuse(range(what.classes, "classes", limits::dataset_classes_max));
  if (what.samples * what.features > limits::dataset_bytes_max)
    return refuse(range(what.samples * what.features, "bytes of pixels", limits::dataset_bytes_max));
  return {};
}

// Over what training can see: shape, classes and scaling, then labels, then pixels.
std::array<char, 32> content_digest(const header& h, std::span<const std::byte> bytes) {
  struct visible {
    std::uint64_t samples;
    std::uint32_t features;
    std::uint32_t classes;
    float mean;
    float deviation;
  };
  const visible shape{h.samples, h.features, h.classes, h.mean, h.deviation};
  static_assert(std::has_unique_object_representations_v<std::uint64_t> && sizeof(visible) == 24);
  digest_builder builder;
  builder.add(std::as_bytes(std::span{&shape, 1}));
  builder.add(bytes.subspan(h.labels_offset, h.samples));
  builder.add(bytes.subspan(h.pixels_offset, h.samples * h.features));
  const std::string text = builder.finish();
  invariant(text.size() == 32, "staged dataset: a digest has 32 hex digits");
  std::array<char, 32> digest{};
  std::copy(text.begin(), text.end(), digest.begin());
  return digest;
}

expected<void> check_header(std::span<const std::byte> bytes, const std::string& locator) {
  const auto refuse = [&locator](const std::string& text) {
    return error{errc::corrupt, "staged dataset '" + locator + "': " + text};
  };
  if (bytes.size() < page_bytes) return refuse("shorter than its header");
  const header& h = header_of(bytes);
  if (h.magic != magic) return refuse("not a staged dataset");
  if (h.version != header_version)
    return refuse("layout version " + std::to_string(h.version) + ", accepted is " +
                  std::to_string(header_version));
  if (h.name_bytes > h.name.size()) return refuse("damaged header");
  const pixel_description what{
      {h.name.data(), h.name_bytes}, h.samples, h.features, h.classes, {h.mean, h.deviation}};
  if (auto checked = check_description(what); !checked) return refuse(checked.failure().text);
  const header right = layout_of(what);
  if (h.labels_offset != right.labels_offset || h.pixels_offset != right.pixels_offset ||
      h.total_bytes != right.total_bytes || bytes.size() != right.total_bytes)
    return refuse("holds " + std::to_string(bytes.size()) + " of " + std::to_string(right.total_bytes) +
                  " bytes");
  return {};
}

std::span<std::uint8_t> as_pixels(std::span<std::byte> bytes) {
  return {reinterpret_cast<std::uint8_t*>(bytes.data()), bytes.size()};
}

} // namespace

staged_dataset::staged_dataset(std::shared_ptr<const staged_memory> memory, const pixel_table& table)
    : memory_{std::move(memory)}
    , table_{table} {
  const auto bytes = memory_->bytes();
  const header& h = header_of(bytes);
  samples_ = h.samples;
  features_ = h.features;
  pixels_ = reinterpret_cast<const std::uint8_t*>(bytes.data() + h.pixels_offset);
  labels_ = reinterpret_cast<const std::uint8_t*>(bytes.data() + h.labels_offset);
}

std::string staged_dataset::name() const {
  const header& h = header_of(memory_->bytes());
  return {h.name.data(), h.name_bytes};
}
std::uint32_t staged_dataset::classes() const {
  return header_of(memory_->bytes()).classes;
}
std::string staged_dataset::digest() const {
  const header& h = header_of(memory_->bytes());
  return {h.digest.data(), h.digest.size()};
}

std::span<const std::uint8_t> staged_dataset::pixels_of(std::uint64_t index) const {
  invariant(index < samples_, "dataset: a sample index lies inside the dataset");
  return {pixels_ + index * features_, features_};
}

expected<void> staged_dataset::read_into(std::uint64_t index, std::span<float> inputs) const {
  scale_pixels(pixels_of(index), table_, inputs);
  return {};
}
std::uint8_t staged_dataset::label(std::uint64_t index) const {
  invariant(index < samples_, "dataset: a sample index lies inside the dataset");
  return labels_[index];
}

void staged_dataset::expect(std::uint64_t index) const {
  constexpr std::size_t line_bytes = 64;
  const auto pixels = pixels_of(index);
  for (std::size_t i = 0; i < pixels.size(); i += line_bytes)
    __builtin_prefetch(pixels.data() + i);
  __builtin_prefetch(labels_ + index);
}

expected<void> check_labels(std::span<const std::uint8_t> labels, std::uint32_t classes,
                            const std::string& source) {
  const auto bad =
      std::find_if(labels.begin(), labels.end(), [classes](std::uint8_t label) { return label >= classes; });
  if (bad == labels.end()) return {};
  return error{errc::bad_data, source + ": label " + std::to_string(*bad) + " at position " +
                                   std::to_string(bad - labels.begin()) + ", accepted are 0 to " +
                                   std::to_string(classes - 1)};
}

expected<std::shared_ptr<const staged_dataset>> stage_pixels(staging& into, const pixel_description& what,
                                                             const pixel_source& source) {
  if (auto checked = check_description(what); !checked) return checked.failure();
  const auto table = make_pixel_table(what.scaling);
  if (!table) return table.failure();

  header h = layout_of(what);
  auto draft = into.begin(what.name, h.total_bytes);
  if (!draft) return draft.failure();
  const auto bytes = draft.value()->bytes();
  const auto labels = as_pixels(bytes.subspan(h.labels_offset, h.samples));
  const auto pixels = as_pixels(bytes.subspan(h.pixels_offset, h.samples * h.features));
  if (auto decoded = source(pixels, labels); !decoded) return decoded.failure();
  if (auto checked = check_labels(labels, h.classes, "dataset '" + what.name + "'"); !checked)
    return checked.failure();

  h.digest = content_digest(h, bytes);
  std::memcpy(bytes.data(), &h, sizeof h);
  auto sealed = draft.value()->seal();
  if (!sealed) return sealed.failure();
  return std::make_shared<const staged_dataset>(std::move(sealed.value()), table.value());
}

expected<std::shared_ptr<const staged_dataset>> open_staged(staging& from, const std::string& locator) {
  auto memory = from.open(locator);
  if (!memory) return memory.failure();
  if (auto checked = check_header(memory.value()->bytes(), locator); !checked) return checked.failure();
  const header& h = header_of(memory.value()->bytes());
  const auto table = make_pixel_table({h.mean, h.deviation});
  if (!table) return table.failure();
  return std::make_shared<const staged_dataset>(std::move(memory.value()), table.value());
}

} // namespace troupe
