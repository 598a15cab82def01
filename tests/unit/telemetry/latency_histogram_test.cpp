#include "runtime/telemetry/latency_histogram.hpp"

#include <algorithm>
#include <cmath>

#include <catch2/catch_test_macros.hpp>

#include "runtime/base/counter_rng.hpp"

namespace troupe {
namespace {

using namespace std::chrono_literals;

// Spread over many magnitudes: 1 ns to about 100 s.
std::vector<duration> sample(std::size_t count) {
  const counter_rng random{1, stream_of("latency")};
  std::vector<duration> values;
  for (std::size_t i = 0; i < count; ++i)
    values.emplace_back(static_cast<duration::rep>(std::exp(25.0 * static_cast<double>(random.uniform(i)))));
  return values;
}

TEST_CASE("latency histogram: quantiles are within 1/64 of the exact ones (LH-1)") {
  auto values = sample(10001);
  latency_histogram histogram;
  for (const auto value : values)
    histogram.record(value);
  std::sort(values.begin(), values.end());
  for (const double fraction : {0.01, 0.25, 0.5, 0.9, 0.99, 0.999}) {
    const auto rank = static_cast<std::size_t>(std::ceil(fraction * static_cast<double>(values.size()))) - 1;
    const auto exact = static_cast<double>(values[rank].count());
    const auto told = static_cast<double>(histogram.quantile(fraction).count());
    CHECK(told >= exact);
    CHECK(told <= exact + std::max(1.0, exact / 64));
  }
  CHECK(histogram.max() == values.back());
  CHECK(histogram.quantile(1.0) == values.back());
  CHECK(histogram.count() == values.size());
}

TEST_CASE("latency histogram: the ends: empty, negative, and beyond the last bucket") {
  latency_histogram histogram;
  CHECK(histogram.p50() == 0ns);
  CHECK(histogram.max() == 0ns);
  histogram.record(-5ms);
  CHECK(histogram.p99() == 0ns);
  histogram.record(100h);
  CHECK(histogram.quantile(1.0) == 100h);
  histogram.clear();
  CHECK(histogram.count() == 0);
}

TEST_CASE("latency histogram: merging equals recording everything in one (LH-2)") {
  const auto values = sample(1000);
  latency_histogram whole;
  latency_histogram left;
  latency_histogram right;
  for (std::size_t i = 0; i < values.size(); ++i) {
    whole.record(values[i]);
    (i % 2 == 0 ? left : right).record(values[i]);
  }
  latency_histogram received = left;
  left.merge(right);
  REQUIRE(received.add(right.buckets(), right.max()));
  for (const double fraction : {0.1, 0.5, 0.99, 1.0}) {
    CHECK(left.quantile(fraction) == whole.quantile(fraction));
    CHECK(received.quantile(fraction) == whole.quantile(fraction));
  }
}

TEST_CASE("latency histogram: buckets that no histogram has are refused") {
  latency_histogram histogram;
  CHECK_FALSE(histogram.add({{1U << 20, 1}}, 1ms));
  CHECK_FALSE(histogram.add({}, -1ms));
  CHECK(histogram.count() == 0);
}

} // namespace
} // namespace troupe
