#include <catch2/catch_test_macros.hpp>

#include "runtime/checkpoint/catalog.hpp"
#include "runtime/checkpoint/retention.hpp"
#include "runtime/checkpoint/version_name.hpp"
#include "tests/unit/checkpoint/fixture.hpp"

namespace troupe {
namespace {

std::vector<step_id> steps(std::initializer_list<std::uint64_t> numbers) {
  std::vector<step_id> list;
  for (const auto number : numbers)
    list.push_back(step_id{number});
  return list;
}

TEST_CASE("retention: the last K and every M-th stay") {
  const auto present = steps({100, 200, 300, 400, 500, 600, 700});
  CHECK(versions_to_remove({3, 0}, present, step_id{700}) == steps({100, 200, 300, 400}));
  CHECK(versions_to_remove({1, 300}, present, step_id{700}) == steps({100, 200, 400, 500}));
  CHECK(versions_to_remove({10, 0}, present, step_id{700}).empty());
  CHECK(versions_to_remove({3, 0}, {}, step_id{700}).empty());
  CHECK(versions_to_remove({1, 0}, steps({300, 100, 200}), step_id{300}) == steps({100, 200}));
}

TEST_CASE("retention: never removes the newest verified version, nor anything newer (CK-5)") {
  const auto present = steps({100, 200, 300, 400, 500});
  CHECK(versions_to_remove({0, 0}, present, step_id{500}) == steps({100, 200, 300, 400}));
  CHECK(versions_to_remove({1, 0}, present, step_id{300}) == steps({100, 200}));
  CHECK(versions_to_remove({2, 0}, present, step_id{200}).empty());
  for (std::uint64_t newest = 100; newest <= 500; newest += 100) {
    for (std::uint32_t keep = 0; keep < 7; ++keep) {
      for (const auto removed : versions_to_remove({keep, 0}, present, step_id{newest}))
        CHECK(removed < step_id{newest});
    }
  }
}

TEST_CASE("retention: a crash never leaves half a version under a version's name (CK-1, CK-5)") {
  const auto prepared = [](test::memory_storage& files) {
    (void)files.create_directories(test::checkpoint_directory);
    for (const std::uint64_t step : {100U, 200U, 300U})
      REQUIRE(test::write_version(files, step, static_cast<float>(step)));
    files.settle();
    files.restart_count();
  };
  const auto retain = [](test::memory_storage& files) {
    return apply_retention(files, test::checkpoint_directory, {1, 0}, step_id{300}, test::test_incarnation);
  };
  test::memory_storage probe;
  prepared(probe);
  CHECK(retain(probe).value() == steps({100, 200}));
  CHECK(probe.list(test::checkpoint_directory)->size() == 1);
  for (std::size_t at = 0; at <= probe.calls(); ++at) {
    for (std::uint64_t mask = 0; mask < 1024; ++mask) {
      test::memory_storage files;
      prepared(files);
      files.die_at(at);
      (void)retain(files);
      const auto pending = files.pending();
      if (mask >= (std::uint64_t{1} << pending)) break;
      files.crash([&](std::size_t index) { return ((mask >> index) & 1U) != 0; });
      const catalog versions{files, test::checkpoint_directory};
      const auto listing = versions.list();
      for (const auto& entry : listing->versions)
        CHECK(versions.verify(entry));
      CHECK(versions.newest_verified(test::small_layout())->found->step == step_id{300});
    }
  }
}

} // namespace
} // namespace troupe
