#include <algorithm>
#include <memory>
#include <thread>

#include <catch2/catch_test_macros.hpp>

#include "runtime/base/bounded_queue.hpp"
#include "runtime/base/buffer_pool.hpp"
#include "runtime/base/counter_rng.hpp"
#include "runtime/base/digest.hpp"
#include "runtime/base/error.hpp"
#include "runtime/base/ids.hpp"
#include "runtime/base/probe.hpp"
#include "runtime/base/task.hpp"
#include "runtime/base/text_parts.hpp"
#include "runtime/base/units.hpp"

namespace troupe {
namespace {

TEST_CASE("units: durations and sizes read back what they print") {
  CHECK(parse_duration("250ms").value() == std::chrono::milliseconds{250});
  CHECK(parse_duration("2min").value() == std::chrono::minutes{2});
  CHECK(parse_duration("1.5s").value() == std::chrono::milliseconds{1500});
  CHECK(format_duration(std::chrono::milliseconds{250}) == "250ms");
  CHECK(format_duration(std::chrono::seconds{5}) == "5s");
  CHECK(parse_size("64KiB").value() == 65536);
  CHECK(format_size(1048576) == "1MiB");
  CHECK(format_number(0) == "0");
  CHECK(format_number(0.050) == "0.05");
}

TEST_CASE("units: a bad value is named in the error") {
  for (const auto* text : {"", "5", "ms", "-1s", "5 s", "1e3s", "nan", "5sec", "99999999999999h"}) {
    const auto parsed = parse_duration(text);
    REQUIRE_FALSE(parsed);
    CHECK(parsed.failure().code == errc::bad_argument);
    CHECK(parsed.failure().text.find("'" + std::string{text} + "'") != std::string::npos);
  }
  CHECK_FALSE(parse_size("12XB"));
}

TEST_CASE("buffer pool: a buffer is lent to one lease at a time (BP-1)") {
  buffer_pool pool{2, 100};
  auto a = pool.try_lend();
  auto b = pool.try_lend();
  REQUIRE(a);
  REQUIRE(b);
  CHECK(a.bytes().data() != b.bytes().data());
  CHECK(reinterpret_cast<std::uintptr_t>(b.bytes().data()) % 64 == 0);
  CHECK_FALSE(pool.try_lend());
  a.release();
  CHECK(pool.available() == 1);
}

TEST_CASE("buffer pool: a pool outlives its leases (BP-2)") {
  auto pool = std::make_unique<buffer_pool>(1, 64);
  auto held = pool->try_lend();
  pool.reset();
  held.bytes()[0] = std::byte{7};
  CHECK(held.bytes()[0] == std::byte{7});
}

TEST_CASE("bounded queue: refuses when full and keeps order") {
  bounded_queue<std::unique_ptr<int>> queue{2};
  CHECK(queue.try_push(std::make_unique<int>(1)));
  CHECK(queue.try_push(std::make_unique<int>(2)));
  CHECK_FALSE(queue.try_push(std::make_unique<int>(3)));
  CHECK(**queue.try_pop() == 1);
  CHECK(**queue.try_pop() == 2);
  CHECK_FALSE(queue.try_pop().has_value());
}

TEST_CASE("bounded queue: two threads exchange every value once") {
  bounded_queue<int> queue{8};
  long sum = 0;
  std::jthread producer{[&] {
    for (int i = 1; i <= 10000;) {
      int value = i;
      if (queue.try_push(std::move(value))) ++i;
    }
  }};
  for (int received = 0; received < 10000;) {
    if (const auto value = queue.try_pop()) {
      sum += *value;
      ++received;
    }
  }
  CHECK(sum == 50005000L);
}

TEST_CASE("counter rng: Philox4x32-10 gives the paper's known answers") {
  CHECK(philox({0, 0, 0, 0}, {0, 0}) ==
        std::array<std::uint32_t, 4>{0x6627e8d5U, 0xe169c58dU, 0xbc57ac4cU, 0x9b00dbd8U});
  CHECK(philox({0xffffffffU, 0xffffffffU, 0xffffffffU, 0xffffffffU}, {0xffffffffU, 0xffffffffU}) ==
        std::array<std::uint32_t, 4>{0x408f276dU, 0x41c83b0eU, 0xa20bc7c6U, 0x6d5451fdU});
}

TEST_CASE("digest: the incremental form equals one call over the whole") {
  const std::string text = "a training program that must not stop";
  const auto bytes = std::as_bytes(std::span{text});
  digest_builder builder;
  builder.add(bytes.subspan(0, 5));
  builder.add(bytes.subspan(5));
  CHECK(builder.finish() == digest_of(bytes));
  CHECK(digest_of(bytes).size() == 32);
}

TEST_CASE("probe: is known before it is reached, and counts") {
  const auto hits_of = [](std::string_view name) {
    const auto all = probes();
    const auto one = std::ranges::find(all, name, &probe_count::name);
    REQUIRE(one != all.end());
    return one->hits;
  };
  CHECK(hits_of("base_test.never") == 0);
  if (hits_of("base_test.twice") != 0) probe<"base_test.never">::hit();
  CHECK(probe<"base_test.twice">::when(true));
  CHECK_FALSE(probe<"base_test.twice">::when(false));
  probe<"base_test.twice">::hit();
  CHECK(hits_of("base_test.twice") == 2);
  CHECK(std::ranges::is_sorted(probes(), {}, &probe_count::name));
}

TEST_CASE("text parts: what stands before a separator, and whole numbers only") {
  std::string_view text{"a::12"};
  CHECK(next_part(text, ':') == "a");
  CHECK(next_part(text, ':').empty());
  CHECK(text == "12");
  CHECK(next_part(text, ':') == "12");
  CHECK(next_part(text, ':').empty());
  unsigned number = 0;
  CHECK(read_number("12", number));
  CHECK(number == 12);
  for (const auto* wrong : {"", "-1", "1 ", "1x", "4294967296"})
    CHECK_FALSE(read_number(wrong, number));
}

TEST_CASE("task: moves its captures and runs without allocation") {
  int calls = 0;
  auto owned = std::make_unique<int>(5);
  task work{[&calls, held = std::move(owned)] { calls += *held; }};
  task moved = std::move(work);
  CHECK_FALSE(static_cast<bool>(work));
  moved();
  CHECK(calls == 5);
}

TEST_CASE("expected: carries a value or an error with its reaction") {
  const expected<int> good{3};
  const expected<int> bad{error{errc::path_lost, "peer 7"}};
  CHECK(*good == 3);
  REQUIRE_FALSE(bad);
  CHECK(reaction_of(bad.failure().code) == reaction::retry);
  CHECK(bad.failure().at("transport").text == "peer 7 [transport]");
}

} // namespace
} // namespace troupe
