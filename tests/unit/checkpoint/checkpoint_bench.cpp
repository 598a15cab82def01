// Hidden: build/tests/unit_checkpoint_files "[.bench]" --benchmark-samples 10
#include <catch2/benchmark/catch_benchmark.hpp>
#include <catch2/catch_test_macros.hpp>

#include "runtime/host/posix_storage.hpp"
#include "tests/unit/checkpoint/fixture.hpp"
#include "tests/unit/host/temporary_directory.hpp"

namespace troupe {
namespace {

TEST_CASE("bench: writing, verifying and loading 64 MiB", "[.bench]") {
  const temporary_directory place;
  posix_storage files;
  auto settings = test::small_settings();
  settings.directory = place.path();
  settings.layout.tensors = {{"w", {2048, 4096}, 0}};
  settings.layout.parameter_elements = 2048 * 4096;
  std::vector<float> state(2 * settings.layout.parameter_elements, 0.25F);
  const auto bytes = std::as_bytes(std::span{state});

  settings.read_back = false;
  BENCHMARK("write, not read back") {
    return checkpoint_writer{files, settings}.write(test::metadata_at(100), bytes).has_value();
  };
  settings.read_back = true;
  BENCHMARK("write, read back") {
    return checkpoint_writer{files, settings}.write(test::metadata_at(100), bytes).has_value();
  };
  const catalog versions{files, place.path()};
  BENCHMARK("newest_verified") {
    return versions.newest_verified(settings.layout)->found.has_value();
  };
  const auto version = versions.version_at(step_id{100}, settings.layout).value();
  BENCHMARK("load_version") {
    return load_version(files, version, settings.layout, std::as_writable_bytes(std::span{state}))
        .has_value();
  };
}

} // namespace
} // namespace troupe
