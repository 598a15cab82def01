// Speed of the data path, hidden from the suite: build/tests/unit_data_prefetch "[benchmark]"
// --benchmark-samples 20
#include <memory>
#include <vector>

#include <catch2/benchmark/catch_benchmark.hpp>
#include <catch2/catch_test_macros.hpp>

#include "runtime/data/prefetch_pump.hpp"
#include "runtime/data/sample_order.hpp"
#include "runtime/data/staged_dataset.hpp"
#include "runtime/host/staging_memfd.hpp"
#include "tests/support/manual_executor.hpp"

namespace troupe {
namespace {

constexpr std::uint64_t samples = 60000;
constexpr std::uint32_t features = 784;
constexpr std::uint32_t global_batch = 1024;

expected<std::shared_ptr<const staged_dataset>> stage_noise(staging& into) {
  return stage_pixels(into, {"noise", samples, features, 10, {}},
                      [](std::span<std::uint8_t> pixels, auto) -> expected<void> {
                        for (std::size_t i = 0; i < pixels.size(); ++i)
                          pixels[i] = static_cast<std::uint8_t>(i * 2654435761U >> 13);
                        return {};
                      });
}

TEST_CASE("data: speed of one batch of 1024 samples of 784 features", "[.][benchmark]") {
  memfd_staging area;
  const auto data = stage_noise(area).value();
  test::manual_executor reader;
  const auto stream = std::make_shared<batch_stream>(2, features);
  prefetch_pump pump{reader, data, stream, {}};
  REQUIRE(pump.start({generation_id{1}, step_id{0}, step_id{1U << 30}, 0, 8, 8, global_batch, 7}));
  reader.run_all();
  std::uint64_t step = 0;
  BENCHMARK("a batch through the pump") {
    stream->give_back(stream->try_next(generation_id{1}, step_id{step++}).value());
    return reader.run_all();
  };
  sample_order order{samples, 7};
  std::uint64_t running = 0;
  BENCHMARK("1024 places of the sample order") {
    std::uint64_t sum = 0;
    for (std::uint32_t i = 0; i < global_batch; ++i)
      sum += order.index_of(running++);
    return sum;
  };
  BENCHMARK("opening the staged dataset, 45 MiB") {
    return open_staged(area, data->memory().locator()).has_value();
  };
}

} // namespace
} // namespace troupe
