#include <catch2/catch_test_macros.hpp>

#include "runtime/checkpoint/directory_guard.hpp"
#include "tests/unit/checkpoint/fixture.hpp"

namespace troupe {
namespace {

expected<void> prepare(storage& files, const std::string& directory) {
  return prepare_checkpoint_directory(files, directory, test::test_incarnation);
}

TEST_CASE("directory guard: creates what is missing, durably, and leaves no probe behind") {
  test::memory_storage files;
  REQUIRE(prepare(files, "/a/b/c/"));
  files.crash([](std::size_t) { return false; });
  CHECK(files.list("/a/b/c")->empty());
  REQUIRE(prepare(files, "/a/b/c"));
  CHECK(files.list("/a/b/c")->empty());
}

TEST_CASE("directory guard: a file in the way is named, with exit code 2") {
  test::memory_storage files;
  test::put_text(files, "/file", "x");
  for (const auto* path : {"/file", "/file/below", ""}) {
    const auto result = prepare(files, path);
    REQUIRE_FALSE(result);
    CHECK(exit_code_of(result.failure().code) == 2);
    CHECK(result.failure().text.find(path) != std::string::npos);
  }
}

TEST_CASE("directory guard: whatever call fails, the answer is one of exit code 2") {
  for (const auto code : {errc::storage_full, errc::storage_failed, errc::not_found, errc::corrupt}) {
    test::memory_storage probe;
    REQUIRE(prepare(probe, "/a/b"));
    for (std::size_t at = 0; at < probe.calls(); ++at) {
      test::memory_storage files;
      files.fail_at(at, code);
      const auto result = prepare(files, "/a/b");
      if (!result) CHECK(exit_code_of(result.failure().code) == 2);
      if (at + 4 >= probe.calls() - 1 && code != errc::not_found) CHECK_FALSE(result);
    }
  }
}

} // namespace
} // namespace troupe
