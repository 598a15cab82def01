#include <array>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch_template_test_macros.hpp>
#include <catch2/catch_test_macros.hpp>

#include "runtime/data/staged_dataset.hpp"
#include "runtime/data/synthetic_dataset.hpp"
#include "runtime/host/staging_memfd.hpp"

namespace troupe {
namespace {

// Samples whose pixel p of sample s is (s * 31 + p), label s % 10.
expected<std::shared_ptr<const staged_dataset>> stage_pattern(staging& into, std::uint64_t samples = 100,
                                                              std::uint32_t features = 13) {
  return stage_pixels(into, {"pattern", samples, features, 10, {}},
                      [&](std::span<std::uint8_t> pixels, std::span<std::uint8_t> labels) -> expected<void> {
                        for (std::uint64_t s = 0; s < samples; ++s) {
                          labels[s] = static_cast<std::uint8_t>(s % 10);
                          for (std::uint32_t p = 0; p < features; ++p)
                            pixels[s * features + p] = static_cast<std::uint8_t>(s * 31 + p);
                        }
                        return {};
                      });
}

bool same_samples(const dataset& a, const dataset& b) {
  std::vector<float> left(a.features());
  std::vector<float> right(b.features());
  for (std::uint64_t i = 0; i < a.samples(); ++i) {
    if (!a.read_into(i, left) || !b.read_into(i, right)) return false;
    if (left != right || a.label(i) != b.label(i)) return false;
  }
  return a.samples() == b.samples();
}

// What every kind of staging promises, real and in memory alike.
TEMPLATE_TEST_CASE("staging: a dataset opened elsewhere is the one that was staged (SD-1)", "",
                   memory_staging, memfd_staging) {
  TestType area;
  const auto owner = stage_pattern(area).value();
  const auto opened = open_staged(area, owner->memory().locator()).value();
  CHECK(opened->name() == "pattern");
  CHECK(opened->classes() == 10);
  CHECK(opened->digest() == owner->digest());
  CHECK(same_samples(*owner, *opened));
}

TEMPLATE_TEST_CASE("staging: what is open outlives its owner, the locator does not", "", memory_staging,
                   memfd_staging) {
  TestType area;
  auto owner = stage_pattern(area).value();
  const auto locator = owner->memory().locator();
  const auto opened = open_staged(area, locator).value();
  owner.reset();
  std::vector<float> inputs(opened->features());
  REQUIRE(opened->read_into(99, inputs));
  CHECK(inputs[1] == static_cast<float>((99 * 31 + 1) % 256) / 255.0F);
  if constexpr (std::is_same_v<TestType, memfd_staging>) {
    const auto late = area.open(locator);
    REQUIRE_FALSE(late);
    CHECK(late.failure().code == errc::not_found);
  }
}

TEMPLATE_TEST_CASE("staging: a locator of something else is refused", "", memory_staging, memfd_staging) {
  TestType area;
  for (const auto* locator : {"", "memory:77", "/proc/self/fd/9999", "/proc/self/maps", "/etc/passwd"})
    CHECK_FALSE(open_staged(area, locator));
}

TEMPLATE_TEST_CASE("staging: a failed decode leaves nothing", "", memory_staging, memfd_staging) {
  TestType area;
  const auto failed = stage_pixels(area, {"none", 4, 4, 2, {}}, [](auto, auto) -> expected<void> {
    return error{errc::bad_data, "the source is broken"};
  });
  REQUIRE_FALSE(failed);
  CHECK(failed.failure().text == "the source is broken");
  const auto wrong_label =
      stage_pixels(area, {"labels", 4, 4, 2, {}}, [](auto, std::span<std::uint8_t> labels) -> expected<void> {
        labels[3] = 2;
        return {};
      });
  REQUIRE_FALSE(wrong_label);
  CHECK(wrong_label.failure().text == "dataset 'labels': label 2 at position 3, accepted are 0 to 1");
}

TEMPLATE_TEST_CASE("staging: memory that holds no dataset is refused", "", memory_staging, memfd_staging) {
  TestType area;
  const auto open_after = [&area](const dataset* like, auto damage) {
    const std::size_t bytes = 3 * 4096;
    auto begun = area.begin("damaged", bytes);
    auto& draft = begun.value();
    if (like != nullptr) {
      const auto source = static_cast<const staged_dataset*>(like)->memory().bytes();
      std::memcpy(draft->bytes().data(), source.data(), source.size());
    }
    damage(draft->bytes());
    const auto sealed = draft->seal().value();
    const auto opened = open_staged(area, sealed->locator());
    REQUIRE_FALSE(opened);
    CHECK(opened.failure().code == errc::corrupt);
  };
  const auto owner = stage_pattern(area).value();
  REQUIRE(owner->memory().bytes().size() < 3 * 4096);
  open_after(nullptr, [](std::span<std::byte>) {});
  open_after(owner.get(), [](std::span<std::byte>) {}); // the size does not fit the header
  open_after(owner.get(), [](std::span<std::byte> b) { b[0] = std::byte{0}; });
  open_after(owner.get(), [](std::span<std::byte> b) { b[8] = std::byte{9}; });
}

TEST_CASE("memfd staging: nobody can write or resize what is sealed (ST-1)") {
  memfd_staging area;
  const auto owner = stage_pattern(area).value();
  const int fd = owner->memory().descriptor();
  REQUIRE(fd >= 0);
  CHECK(::ftruncate(fd, 1) != 0);
  CHECK(::ftruncate(fd, 1 << 20) != 0);
  CHECK(::write(fd, "x", 1) < 0);
  CHECK(::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) == MAP_FAILED);
}

TEST_CASE("memfd staging: a page that the kernel still holds does not keep a draft from being sealed") {
  memfd_staging area;
  auto draft = std::move(area.begin("held", 4 * 4096).value());
  std::array<int, 2> ends{};
  REQUIRE(::pipe2(ends.data(), O_CLOEXEC) == 0);
  const iovec page{draft->bytes().data(), 4096};
  REQUIRE(::vmsplice(ends[1], &page, 1, 0) == 4096); // the pipe holds the page itself, no copy
  const auto sealed = draft->seal();
  CHECK(sealed);
  for (const int end : ends)
    ::close(end);
}

TEST_CASE("memfd staging: memory that is not sealed is refused (ST-1)") {
  const int fd = ::memfd_create("unsealed", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  REQUIRE(fd >= 0);
  REQUIRE(::ftruncate(fd, 8192) == 0);
  memfd_staging area;
  const auto opened = area.open(inherited_locator(fd));
  REQUIRE_FALSE(opened);
  CHECK(opened.failure().code == errc::corrupt);
  ::close(fd);
}

TEST_CASE("memfd staging: another process reads it by its parent's locator and by an inherited descriptor") {
  memfd_staging area;
  const auto owner = stage_pattern(area).value();
  const auto& memory = owner->memory();
  const auto digest = owner->digest();
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    bool good = true;
    for (const auto& locator : {memory.locator(), inherited_locator(memory.descriptor())}) {
      const auto opened = open_staged(area, locator);
      good = good && opened && opened.value()->digest() == digest && same_samples(*opened.value(), *owner);
    }
    ::_exit(good ? 0 : 1);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(status == 0);
}

TEST_CASE("pixel scaling: the vector form gives the table's bits, at every length and alignment") {
  const auto table = make_pixel_table({0.2860F, 0.3530F}).value();
  CHECK(table[255] == (255.0F / 255.0F - 0.2860F) / 0.3530F);
  std::vector<std::uint8_t> pixels(300);
  for (std::size_t i = 0; i < pixels.size(); ++i)
    pixels[i] = static_cast<std::uint8_t>(i * 7);
  for (std::size_t first = 0; first < 9; ++first)
    for (std::size_t length = 0; length < 40; ++length) {
      std::vector<float> into(length + 1, -1.0F);
      scale_pixels(std::span{pixels}.subspan(first, length), table, std::span{into}.first(length));
      for (std::size_t i = 0; i < length; ++i)
        REQUIRE(into[i] == table[pixels[first + i]]);
      REQUIRE(into[length] == -1.0F);
    }
}

TEST_CASE("synthetic dataset: a pure function of its shape and seed") {
  const synthetic_dataset a{{}};
  const synthetic_dataset b{{}};
  const synthetic_dataset other{{.seed = 2}};
  CHECK(same_samples(a, b));
  CHECK_FALSE(same_samples(a, other));
  CHECK(a.digest() == b.digest());
  CHECK(a.digest() != other.digest());
  CHECK(a.label(5) == 1);
}

TEST_CASE("dataset: a range reads samples in their stored order and not beyond the end") {
  const synthetic_dataset data{{}};
  std::vector<float> inputs(3 * 8);
  std::vector<std::uint8_t> labels(3);
  REQUIRE(read_range(data, 61, 3, inputs, labels));
  CHECK(labels == std::vector<std::uint8_t>{1, 2, 3});
  std::array<float, 8> one{};
  REQUIRE(data.read_into(62, one));
  CHECK(std::equal(one.begin(), one.end(), inputs.begin() + 8));
  CHECK(read_range(data, 62, 3, inputs, labels).failure().code == errc::bad_argument);
}

} // namespace
} // namespace troupe
