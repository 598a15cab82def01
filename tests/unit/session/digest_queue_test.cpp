#include "runtime/session/digest_queue.hpp"

#include <vector>

#include <catch2/catch_test_macros.hpp>

#include "runtime/base/counter_rng.hpp"
#include "runtime/base/digest.hpp"
#include "tests/support/manual_executor.hpp"

namespace troupe::test {
namespace {

constexpr std::size_t slice = 1000;

std::vector<std::byte> random_bytes(std::size_t count, std::uint64_t seed) {
  const counter_rng random{seed, 0};
  std::vector<std::byte> bytes(count);
  for (std::size_t i = 0; i < count; ++i)
    bytes[i] = static_cast<std::byte>(random.bits(i));
  return bytes;
}

TEST_CASE("digest queue: in slices it tells what digest_of says of the whole, a slice a task (DQ-1)") {
  for (const std::size_t bytes : {1U, 999U, 1000U, 1001U, 7500U}) {
    manual_executor loop;
    digest_queue queue{loop, slice};
    const auto data = random_bytes(bytes, bytes);
    std::string told;
    const auto kept = queue.begin(data, [&](const std::string& digest) { told = digest; });
    CHECK(told.empty()); // never inside the call
    CHECK(loop.run_all() == (bytes + slice - 1) / slice);
    CHECK(told == digest_of(data));
  }
}

TEST_CASE("digest queue: computations take turns, one slice a task for all of them (DQ-1)") {
  manual_executor loop;
  digest_queue queue{loop, slice};
  const auto large = random_bytes(10 * slice, 1);
  const auto small = random_bytes(2 * slice, 2);
  std::vector<std::string> told;
  const auto first = queue.begin(large, [&](const std::string& digest) { told.push_back(digest); });
  const auto second = queue.begin(small, [&](const std::string& digest) { told.push_back(digest); });
  for (int task = 1; task <= 4; ++task) {
    CHECK(told.empty());
    CHECK(loop.pending() == 1);
    REQUIRE(loop.run_one());
  }
  CHECK(told == std::vector{digest_of(small)}); // did not wait for the large one
  CHECK(loop.run_all() == 8);
  CHECK(told.back() == digest_of(large));
}

TEST_CASE("digest queue: what is dropped is told nothing, also from inside of another's answer (DQ-2)") {
  manual_executor loop;
  auto queue = std::make_unique<digest_queue>(loop, slice);
  const auto data = random_bytes(slice, 3);
  int told = 0;
  digest_queue::handle dropped;
  const auto kept = queue->begin(data, [&](const std::string&) {
    ++told;
    dropped.reset();
  });
  dropped = queue->begin(data, [&](const std::string&) { ++told; });
  (void)loop.run_all();
  CHECK(told == 1);
  const auto last = queue->begin(data, [&](const std::string&) { queue.reset(); });
  const auto after = queue->begin(data, [&](const std::string&) { ++told; });
  (void)loop.run_all();
  CHECK(told == 1); // the queue ended before its turn
}

} // namespace
} // namespace troupe::test
