// IDX files, plain or gzip: two bytes of length, the images' file, then the labels' file.
#include "runtime/data/idx_dataset.hpp"

#include <algorithm>
#include <cstring>

#include "runtime/data/staging.hpp"
#include "runtime/seams/storage.hpp"
#include "tests/fuzz/targets.hpp"

namespace troupe::fuzz {
namespace {

// Two files that can be read; nothing else is asked of it.
class two_files final : public storage {
public:
  two_files(input images, input labels)
      : images_{bytes_of(images)}
      , labels_{bytes_of(labels)} {}
  expected<std::vector<std::byte>> read_file(const std::string& path, std::uint64_t bytes_max) override {
    const auto& file = of(path);
    if (file.size() > bytes_max) return error{errc::corrupt, "too large"};
    return file;
  }
  expected<void> read_at(const std::string& path, std::uint64_t offset, std::span<std::byte> into) override {
    const auto& file = of(path);
    if (offset > file.size() || into.size() > file.size() - offset) return error{errc::corrupt, "short"};
    std::copy_n(file.begin() + static_cast<std::ptrdiff_t>(offset), into.size(), into.begin());
    return {};
  }
  expected<std::uint64_t> file_bytes(const std::string& path) override { return of(path).size(); }
  expected<void> create_directories(const std::string&) override { return no(); }
  expected<void> write_file(const std::string&, std::span<const std::span<const std::byte>>) override {
    return no();
  }
  expected<std::vector<std::string>> list(const std::string&) override { return no(); }
  expected<void> rename(const std::string&, const std::string&) override { return no(); }
  expected<void> sync_directory(const std::string&) override { return no(); }
  expected<void> remove_all(const std::string&) override { return no(); }

private:
  static error no() { return {errc::storage_failed, "read only"}; }
  [[nodiscard]] const bytes& of(const std::string& path) const {
    return path == "images" ? images_ : labels_;
  }
  bytes images_, labels_;
};

void run(input given) {
  if (given.size() < 2) return;
  const std::size_t first = std::to_integer<std::size_t>(given[0]) | std::to_integer<std::size_t>(given[1])
                                                                         << 8U;
  given = given.subspan(2);
  const auto images = given.first(std::min(first, given.size()));
  two_files files{images, given.subspan(images.size())};
  memory_staging place;
  const auto staged = stage_idx(files, place, {.name = "fuzz", .images = "images", .labels = "labels"});
  if (!staged) {
    require(staged.failure().code == errc::bad_data || staged.failure().code == errc::too_large ||
                staged.failure().code == errc::storage_full,
            "malformed is bad data");
    return;
  }
  std::vector<float> inputs((*staged)->features());
  for (std::uint64_t i = 0; i < (*staged)->samples(); ++i) {
    require((*staged)->read_into(i, inputs).has_value(), "a staged sample reads");
    require((*staged)->label(i) < (*staged)->classes(), "a staged label is a class");
  }
}

void add_number(bytes& to, std::uint32_t value) { // big-endian
  for (const unsigned shift : {24U, 16U, 8U, 0U})
    to.push_back(static_cast<std::byte>(value >> shift & 0xffU));
}

bytes both(const bytes& images, const bytes& labels) {
  bytes made{static_cast<std::byte>(images.size() & 0xffU), static_cast<std::byte>(images.size() >> 8U)};
  made.insert(made.end(), images.begin(), images.end());
  made.insert(made.end(), labels.begin(), labels.end());
  return made;
}

// A gzip file of one stored block: no compressor is needed to make it. `crc` as computed elsewhere.
bytes zipped(const bytes& content, std::uint32_t crc) {
  bytes made;
  for (const unsigned head : {0x1fU, 0x8bU, 8U, 0U, 0U, 0U, 0U, 0U, 0U, 0xffU, 1U})
    made.push_back(static_cast<std::byte>(head));
  const auto length = static_cast<std::uint32_t>(content.size());
  for (const auto number : {length, ~length})
    for (const unsigned shift : {0U, 8U})
      made.push_back(static_cast<std::byte>(number >> shift & 0xffU));
  made.insert(made.end(), content.begin(), content.end());
  for (const auto number : {crc, length})
    for (const unsigned shift : {0U, 8U, 16U, 24U})
      made.push_back(static_cast<std::byte>(number >> shift & 0xffU));
  return made;
}

std::uint32_t crc32_of(input content) {
  std::uint32_t crc = ~0U;
  for (const auto byte : content) {
    crc ^= std::to_integer<std::uint32_t>(byte);
    for (int bit = 0; bit < 8; ++bit)
      crc = crc >> 1U ^ ((crc & 1U) != 0 ? 0xedb88320U : 0U);
  }
  return ~crc;
}

std::vector<bytes> seeds() {
  bytes images;
  for (const std::uint32_t number : {0x803U, 3U, 2U, 2U})
    add_number(images, number);
  for (unsigned pixel = 0; pixel < 12; ++pixel)
    images.push_back(static_cast<std::byte>(pixel * 20));
  bytes labels;
  for (const std::uint32_t number : {0x801U, 3U})
    add_number(labels, number);
  for (const unsigned label : {0U, 9U, 4U})
    labels.push_back(static_cast<std::byte>(label));
  return {both(images, labels), both(zipped(images, crc32_of(images)), zipped(labels, crc32_of(labels)))};
}

} // namespace

const target idx_target{"idx", run, seeds, 3000};

} // namespace troupe::fuzz
