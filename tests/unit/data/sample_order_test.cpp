#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <numeric>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include "runtime/data/sample_order.hpp"

namespace troupe {
namespace {

std::vector<std::uint64_t> order_of(std::uint64_t samples, std::uint64_t seed, std::uint64_t epoch) {
  const epoch_order order{samples, seed, epoch};
  std::vector<std::uint64_t> result(samples);
  for (std::uint64_t p = 0; p < samples; ++p)
    result[p] = order(p);
  return result;
}

bool is_permutation(std::vector<std::uint64_t> values) {
  std::sort(values.begin(), values.end());
  for (std::uint64_t i = 0; i < values.size(); ++i)
    if (values[i] != i) return false;
  return true;
}

TEST_CASE("sample order: each sample exactly once an epoch, at every size (SO-1)") {
  for (std::uint64_t samples = 1; samples <= 300; ++samples)
    for (std::uint64_t epoch = 0; epoch < 3; ++epoch)
      REQUIRE(is_permutation(order_of(samples, 7, epoch)));
  for (const std::uint64_t samples :
       {1023U, 1024U, 1025U, 4095U, 4097U, 10000U, 60000U, 65536U, 65537U, 200003U})
    for (const std::uint64_t seed : {0ULL, 1ULL, 0xffffffffffffffffULL})
      REQUIRE(is_permutation(order_of(samples, seed, 5)));
}

TEST_CASE("sample order: epochs and seeds differ") {
  const auto base = order_of(60000, 7, 0);
  for (const auto& other : {order_of(60000, 7, 1), order_of(60000, 8, 0)}) {
    std::size_t same = 0;
    for (std::size_t i = 0; i < base.size(); ++i)
      same += base[i] == other[i] ? 1U : 0U;
    CHECK(same < 10); // about one is expected of two random permutations
  }
}

TEST_CASE("sample order: fixed answers, so that a job resumed by a later build reads on (SO-2)") {
  const epoch_order order{60000, 7, 3};
  CHECK(order(0) == 59327);
  CHECK(order(1) == 41516);
  CHECK(order(59999) == 26244);
}

// Chi-squared over all 120 orders of five samples: 119 degrees of freedom, deviation 15.4.
TEST_CASE("sample order: all orders of a tiny dataset come up equally often") {
  constexpr std::uint64_t epochs = 120000;
  std::map<std::vector<std::uint64_t>, double> seen;
  for (std::uint64_t epoch = 0; epoch < epochs; ++epoch)
    ++seen[order_of(5, 11, epoch)];
  REQUIRE(seen.size() == 120);
  double chi = 0;
  for (const auto& [order, count] : seen)
    chi += (count - 1000) * (count - 1000) / 1000;
  CHECK(std::abs(chi - 119) < 5 * 15.4);
}

// Every sample at every position equally often: 2500 - 1 degrees of freedom, deviation 71.
TEST_CASE("sample order: every sample reaches every position equally often") {
  constexpr std::uint64_t samples = 50;
  constexpr std::uint64_t epochs = 20000;
  std::vector<double> seen(samples * samples, 0.0);
  for (std::uint64_t epoch = 0; epoch < epochs; ++epoch) {
    const epoch_order order{samples, 3, epoch};
    for (std::uint64_t p = 0; p < samples; ++p)
      ++seen[p * samples + order(p)];
  }
  const double mean = double{epochs} / samples;
  double chi = 0;
  for (const double count : seen)
    chi += (count - mean) * (count - mean) / mean;
  CHECK(std::abs(chi - 49.0 * 49.0) < 5 * 70);
}

// Neighbours of one epoch: the correlation of order(p) and order(p + 1) has deviation 1 / sqrt(60000).
TEST_CASE("sample order: neighbours are not correlated") {
  const auto order = order_of(60000, 7, 0);
  const double mean = 59999.0 / 2;
  double covariance = 0;
  double variance = 0;
  for (std::size_t i = 0; i + 1 < order.size(); ++i) {
    const double here = static_cast<double>(order[i]) - mean;
    covariance += here * (static_cast<double>(order[i + 1]) - mean);
    variance += here * here;
  }
  CHECK(std::abs(covariance / variance) < 5 * 0.0041);
}

TEST_CASE("sample order: a running number crosses epochs in both directions (SO-2)") {
  sample_order order{10, 4};
  std::vector<std::uint64_t> forward;
  for (std::uint64_t g = 0; g < 30; ++g)
    forward.push_back(order.index_of(g));
  for (std::uint64_t epoch = 0; epoch < 3; ++epoch)
    CHECK(std::equal(forward.begin() + static_cast<long>(epoch * 10),
                     forward.begin() + static_cast<long>(epoch * 10 + 10), order_of(10, 4, epoch).begin()));
  for (std::uint64_t g = 30; g-- > 0;)
    CHECK(order.index_of(g) == forward[g]);
}

} // namespace
} // namespace troupe
