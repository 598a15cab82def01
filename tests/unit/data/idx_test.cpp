#include <algorithm>
#include <array>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include "runtime/data/idx_dataset.hpp"
#include "runtime/host/staging_memfd.hpp"
#include "tests/unit/data/data_files.hpp"

namespace troupe {
namespace {

using namespace data_test;

constexpr std::uint32_t image_magic = 0x803;
constexpr std::uint32_t label_magic = 0x801;

// Three images of 2 x 2 pixels, labels 0 to 2; each test damages one thing.
struct small_files {
  temporary_directory directory;
  disk_files files;
  memory_staging memory;
  std::string images{directory.file("images")};
  std::string labels{directory.file("labels")};
  byte_string pixels{0, 1, 2, 3, 4, 5, 6, 7, 128, 253, 254, 255};

  small_files() {
    write(images, gzip(idx_bytes(image_magic, {3, 2, 2}, pixels)));
    write(labels, gzip(idx_bytes(label_magic, {3}, {0, 1, 2})));
  }
  expected<std::shared_ptr<const staged_dataset>> read(pixel_scaling scaling = {}) {
    return stage_idx(files, memory, {"small", images, labels, 3, scaling});
  }
  // The text of the error, which has to be bad data and one line.
  std::string refusal() {
    const auto result = read();
    REQUIRE_FALSE(result);
    CHECK(result.failure().code == errc::bad_data);
    CHECK(exit_code_of(result.failure().code) == 5);
    CHECK(result.failure().text.find('\n') == std::string::npos);
    return result.failure().text;
  }
};

bool has(const std::string& text, const std::string& part) {
  INFO(text);
  INFO(part);
  const bool found = text.find(part) != std::string::npos;
  CHECK(found);
  return found;
}

TEST_CASE("idx: gzip and plain files give the same samples and digest") {
  small_files f;
  const auto zipped = f.read().value();
  CHECK(zipped->name() == "small");
  CHECK(zipped->samples() == 3);
  CHECK(zipped->features() == 4);
  CHECK(zipped->classes() == 3);
  CHECK(zipped->digest().size() == 32);
  std::array<float, 4> inputs{};
  REQUIRE(zipped->read_into(2, inputs));
  CHECK(inputs == std::array{128.0F / 255.0F, 253.0F / 255.0F, 254.0F / 255.0F, 1.0F});
  CHECK(zipped->label(2) == 2);

  write(f.images, idx_bytes(image_magic, {3, 2, 2}, f.pixels));
  write(f.labels, idx_bytes(label_magic, {3}, {0, 1, 2}));
  CHECK(f.read().value()->digest() == zipped->digest());
}

TEST_CASE("idx: a file of several gzip members is one stream") {
  small_files f;
  const auto whole = idx_bytes(image_magic, {3, 2, 2}, f.pixels);
  auto first = gzip({whole.begin(), whole.begin() + 10});
  const auto second = gzip({whole.begin() + 10, whole.end()});
  first.insert(first.end(), second.begin(), second.end());
  const auto digest = f.read().value()->digest();
  write(f.images, first);
  CHECK(f.read().value()->digest() == digest);
}

TEST_CASE("idx: the digest changes with a pixel, a label and the scaling") {
  small_files f;
  const auto digest = f.read().value()->digest();
  CHECK(f.read({0.5F, 0.25F}).value()->digest() != digest);
  write(f.labels, idx_bytes(label_magic, {3}, {0, 2, 2}));
  CHECK(f.read().value()->digest() != digest);
  write(f.labels, idx_bytes(label_magic, {3}, {0, 1, 2}));
  CHECK(f.read().value()->digest() == digest);
  f.pixels[7] = 8;
  write(f.images, idx_bytes(image_magic, {3, 2, 2}, f.pixels));
  CHECK(f.read().value()->digest() != digest);
}

TEST_CASE("idx: a missing file is named") {
  small_files f;
  std::filesystem::remove(f.labels);
  has(f.refusal(), "dataset file '" + f.labels + "': cannot be read");
}

TEST_CASE("idx: a directory in the place of a file is refused") {
  small_files f;
  f.images = f.directory.file("");
  has(f.refusal(), "cannot be read");
}

TEST_CASE("idx: an empty file is truncated") {
  small_files f;
  write(f.images, {});
  has(f.refusal(), "truncated: holds 0 of 4 bytes of header");
}

// Every prefix of both files, so that each place where reading can end is passed (IS-1).
TEST_CASE("idx: any truncation of a gzip file is refused (IS-1)") {
  small_files f;
  const auto images = gzip(idx_bytes(image_magic, {3, 2, 2}, f.pixels));
  for (std::size_t length = 0; length < images.size(); ++length) {
    write(f.images, {images.begin(), images.begin() + static_cast<long>(length)});
    const auto text = f.refusal();
    CHECK(text.starts_with("dataset file '" + f.images + "': "));
  }
  write(f.images, images);
  const auto labels = gzip(idx_bytes(label_magic, {3}, {0, 1, 2}));
  for (std::size_t length = 0; length < labels.size(); ++length) {
    write(f.labels, {labels.begin(), labels.begin() + static_cast<long>(length)});
    CHECK(f.refusal().starts_with("dataset file '" + f.labels + "': "));
  }
}

TEST_CASE("idx: a truncated payload inside a whole gzip file is refused (IS-1)") {
  small_files f;
  f.pixels.pop_back();
  write(f.images, gzip(idx_bytes(image_magic, {3, 2, 2}, f.pixels)));
  has(f.refusal(), "truncated: holds 11 of 12 bytes of pixels");
  write(f.images, idx_bytes(image_magic, {3, 2, 2}, f.pixels));
  has(f.refusal(), "truncated: holds 11 of 12 bytes of pixels");
}

TEST_CASE("idx: trailing bytes are refused (IS-1)") {
  small_files f;
  f.pixels.push_back(0);
  SECTION("inside the gzip data") {
    write(f.images, gzip(idx_bytes(image_magic, {3, 2, 2}, f.pixels)));
  }
  SECTION("in a plain file") {
    write(f.images, idx_bytes(image_magic, {3, 2, 2}, f.pixels));
  }
  has(f.refusal(), "trailing bytes after 12 bytes of pixels");
}

TEST_CASE("idx: bytes after the gzip data are refused (IS-1)") {
  small_files f;
  auto bytes = gzip(idx_bytes(image_magic, {3, 2, 2}, f.pixels));
  bytes.push_back(0);
  write(f.images, bytes);
  has(f.refusal(), "trailing bytes after the gzip data");
}

TEST_CASE("idx: any flipped bit in the deflate data or its checksum is refused (IS-2)") {
  small_files f;
  const auto whole = gzip(idx_bytes(image_magic, {3, 2, 2}, f.pixels));
  for (std::size_t i = 10; i < whole.size(); ++i) { // 10: behind the gzip header, which carries no content
    auto damaged = whole;
    damaged[i] = static_cast<std::uint8_t>(damaged[i] ^ 0x10U);
    write(f.images, damaged);
    f.refusal();
  }
}

TEST_CASE("idx: a wrong magic is named with the accepted one") {
  small_files f;
  write(f.images, gzip(idx_bytes(label_magic, {3}, {0, 1, 2})));
  has(f.refusal(), "magic 0x00000801, accepted is 0x00000803 (unsigned bytes, 3 dimensions)");
  write(f.images, idx_bytes(0xdeadbeef, {3, 2, 2}, f.pixels));
  has(f.refusal(), "magic 0xdeadbeef");
}

TEST_CASE("idx: zero and absurd sizes are refused before memory is asked for") {
  small_files f;
  write(f.images, idx_bytes(image_magic, {0, 2, 2}, {}));
  has(f.refusal(), "0 images, accepted are 1 to");
  write(f.images, idx_bytes(image_magic, {3, 0, 2}, {}));
  has(f.refusal(), "0 rows, accepted are 1 to");
  write(f.images, idx_bytes(image_magic, {3, 2, 0xffffffff}, f.pixels));
  has(f.refusal(), "4294967295 columns, accepted are 1 to 16777216");
  write(f.images, idx_bytes(image_magic, {3, 65536, 65536}, f.pixels));
  has(f.refusal(), "4294967296 pixels an image");
  write(f.images, idx_bytes(image_magic, {0xffffffff, 2048, 2048}, f.pixels));
  has(f.refusal(), "bytes of pixels, accepted are up to");
  write(f.images, gzip(idx_bytes(image_magic, {1000000, 2, 2}, f.pixels)));
  has(f.refusal(), "truncated: its header promises 4000000 bytes of pixels");
}

TEST_CASE("idx: different numbers of images and labels are refused, both named") {
  small_files f;
  write(f.labels, gzip(idx_bytes(label_magic, {2}, {0, 1})));
  const auto text = f.refusal();
  has(text, "3 images and 2 labels");
  has(text, f.images);
  has(text, f.labels);
}

TEST_CASE("idx: a label out of range is named with its position and file") {
  small_files f;
  write(f.labels, gzip(idx_bytes(label_magic, {3}, {0, 3, 2})));
  has(f.refusal(), "dataset file '" + f.labels + "': label 3 at position 1, accepted are 0 to 2");
}

TEST_CASE("idx: impossible settings are an argument error") {
  small_files f;
  const auto no_classes = stage_idx(f.files, f.memory, {"small", f.images, f.labels, 0, {}});
  REQUIRE_FALSE(no_classes);
  CHECK(no_classes.failure().code == errc::bad_argument);
  const auto flat = f.read({0.0F, 0.0F});
  REQUIRE_FALSE(flat);
  CHECK(flat.failure().code == errc::bad_argument);
}

TEST_CASE("idx: Fashion-MNIST has 60000 samples of 784 features and all labels 0 to 9") {
  const std::string directory = "/usr/share/datasets/fashion-mnist/";
  disk_files files;
  memfd_staging memory;
  const auto images = stage_idx(files, memory,
                                {"fashion-mnist",
                                 directory + "train-images-idx3-ubyte.gz",
                                 directory + "train-labels-idx1-ubyte.gz",
                                 10,
                                 {}})
                          .value();
  CHECK(images->samples() == 60000);
  CHECK(images->features() == 784);
  std::array<int, 10> seen{};
  for (std::uint64_t i = 0; i < images->samples(); ++i)
    ++seen[images->label(i)];
  CHECK(std::all_of(seen.begin(), seen.end(), [](int n) { return n == 6000; }));
  std::vector<float> inputs(784);
  REQUIRE(images->read_into(59999, inputs));
  CHECK(*std::max_element(inputs.begin(), inputs.end()) <= 1.0F);
  CHECK(*std::max_element(inputs.begin(), inputs.end()) > 0.5F);

  const auto opened = open_staged(memory, images->memory().locator()).value();
  CHECK(opened->digest() == images->digest());
}

} // namespace
} // namespace troupe
