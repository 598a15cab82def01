#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include "runtime/base/counter_rng.hpp"
#include "tests/unit/train/doubles.hpp"

namespace troupe {
namespace {

using namespace troupe::testing;
using floats = std::vector<float>;

constexpr auto nan = std::numeric_limits<float>::quiet_NaN();
constexpr auto infinite = std::numeric_limits<float>::infinity();

// What TK-1 says, by sorting.
void keep_by_sorting(floats& gradient, floats& residual, std::size_t kept) {
  for (std::size_t i = 0; i < gradient.size(); ++i)
    residual[i] += gradient[i];
  std::vector<std::size_t> order(gradient.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto size = [&](std::size_t i) { return std::bit_cast<std::uint32_t>(residual[i]) & 0x7fffffffU; };
  std::ranges::stable_sort(order, [&](auto a, auto b) { return size(a) > size(b); });
  std::ranges::fill(gradient, 0.0F);
  for (std::size_t i = 0; i < kept; ++i)
    gradient[order[i]] = std::exchange(residual[order[i]], 0.0F);
}

bool same_bits(const floats& a, const floats& b) {
  return std::ranges::equal(
      a, b, {}, [](float x) { return std::bit_cast<std::uint32_t>(x); },
      [](float x) { return std::bit_cast<std::uint32_t>(x); });
}

TEST_CASE("top-k: the largest of gradient + residual are kept, of equal ones the first (TK-1)") {
  floats gradient{1, -3, 2, 0, 3, -2};
  floats residual{0, 0, 0, 0, 0, 0};
  SECTION("two of them") {
    keep_largest(gradient, residual, 2);
    CHECK(gradient == floats{0, -3, 0, 0, 3, 0});
    CHECK(residual == floats{1, 0, 2, 0, 0, -2});
    gradient = {1, 0, 0, 0, 1, 0};
    keep_largest(gradient, residual, 2);
    CHECK(gradient == floats{2, 0, 2, 0, 0, 0});
    CHECK(residual == floats{0, 0, 0, 0, 1, -2});
  }
  SECTION("ties") {
    keep_largest(gradient, residual, 3);
    CHECK(gradient == floats{0, -3, 2, 0, 3, 0});
    CHECK(residual == floats{1, 0, 0, 0, 0, -2});
  }
  SECTION("more than differ from zero") {
    keep_largest(gradient, residual, 6);
    CHECK(gradient == floats{1, -3, 2, 0, 3, -2});
    CHECK(residual == floats(6, 0.0F));
  }
}

TEST_CASE("top-k: what is not finite is kept first, so that the sum is refused as without (TK-1, SE-10)") {
  floats gradient{7, nan, -infinite, 9};
  floats residual(4, 0.0F);
  keep_largest(gradient, residual, 1);
  CHECK(std::isnan(gradient[1]));
  gradient = {7, 1, infinite, 9};
  residual = floats(4, 0.0F);
  keep_largest(gradient, residual, 2);
  CHECK(gradient == floats{0, 0, infinite, 9});
}

TEST_CASE("top-k: as sorting would choose, for any values; and nothing is lost (TK-1, TK-2)") {
  const counter_rng rng{5, 6};
  std::uint64_t drawn = 0;
  for (const std::size_t size : {1U, 16U, 100U, 4096U, 5000U}) {
    floats gradient(size), residual(size);
    for (std::uint64_t round = 0; round < 20; ++round) {
      const bool coarse = round % 2 == 0; // many ties
      for (auto& value : gradient) {
        const auto unit = rng.uniform(drawn++) - 0.5F;
        value = coarse ? std::round(unit * 8) : std::ldexp(unit, static_cast<int>(drawn % 60) - 30);
      }
      auto all = residual;
      for (std::size_t i = 0; i < size; ++i)
        all[i] += gradient[i];
      auto right_gradient = gradient, right_residual = residual;
      const auto kept = 1 + (round * size / 20);
      keep_by_sorting(right_gradient, right_residual, kept);
      keep_largest(gradient, residual, kept);
      CHECK(same_bits(gradient, right_gradient));
      CHECK(same_bits(residual, right_residual));
      for (std::size_t i = 0; i < size; ++i)
        if (gradient[i] + residual[i] != all[i]) FAIL("entry " << i << " of " << size);
    }
  }
}

TEST_CASE("top-k: how many entries are kept; a residual a shard follows the optimizer's slots") {
  parameter_store store{7};
  const tiny_model kernels{store}; // 5 + 1 parameters
  const auto rule = std::move(make_optimizer(adamw{}).value());
  freeze_state(store, *rule, 3, 0.5);
  CHECK(store.layout().slots ==
        std::vector<std::string>{"mean", "variance", "residual_0", "residual_1", "residual_2"});
  CHECK(kept_entries(store.layout(), 0) == 0);
  CHECK(kept_entries(store.layout(), 0.0001) == 1);
  CHECK(kept_entries(store.layout(), 0.5) == 3);
  CHECK(kept_entries(store.layout(), 0.51) == 4);
  CHECK(sum_shape(store.layout(), 3, element_type::float32, 0.5).kept == 3);
  CHECK(sum_shape(store.layout(), 3, element_type::float32, 0).group_bytes == 0);
}

step_settings settings_of(std::uint64_t whole_every) {
  return {.shards = 8,
          .global_batch = 64,
          .top_k = 0.3,
          .whole_every = whole_every,
          .rate = cosine{.peak = 0.1F, .warmup_steps = 10, .total_steps = 50}};
}

struct job {
  job(std::uint32_t world, std::uint64_t whole_every) {
    for (std::uint32_t rank = 0; rank < world; ++rank)
      workers.push_back(std::make_unique<worker>(settings_of(whole_every), sgd{}));
    auto shape = workers[0]->engine.shape();
    shape.world = world;
    all = std::make_unique<test_collective>(shape);
  }
  void begin(std::uint64_t first, std::uint64_t last) {
    for (std::uint32_t rank = 0; rank < workers.size(); ++rank)
      workers[rank]->begin(*all, rank, static_cast<std::uint32_t>(workers.size()), first, last);
  }
  void drain() { troupe::testing::drain(workers); }

  std::vector<std::unique_ptr<worker>> workers;
  std::unique_ptr<test_collective> all;
};

std::string state_at(std::uint64_t step) {
  job alone{1, 1};
  alone.begin(0, step);
  alone.drain();
  return alone.workers[0]->engine.state_digest();
}

TEST_CASE(
    "step engine: with Top-K a run that ends between two whole states goes back to the newest (SE-11)") {
  job three{3, 10};
  three.begin(0, 50);
  for (const auto& one : three.workers)
    one->stream->limit(27);
  three.drain();
  for (const auto& one : three.workers)
    one->engine.end();
  three.drain();
  const auto whole = state_at(20);
  for (const auto& one : three.workers) {
    CHECK(one->observer.applied == 27);
    CHECK(one->observer.ended_at == step_id{20});
    CHECK(one->engine.applied() == step_id{20});
    CHECK(one->box.step_applied.load() == 20);
    CHECK(one->engine.state_digest() == whole);
  }
  three.begin(20, 50);
  three.drain();
  const auto end = state_at(50);
  for (const auto& one : three.workers) {
    CHECK(one->observer.ended == run_end::finished);
    CHECK(one->engine.state_digest() == end);
  }
}

TEST_CASE("step engine: with Top-K a step in flight that is aborted leaves the state whole (SE-2, SE-11)") {
  job two{2, 1};
  two.begin(0, 50);
  two.workers[0]->stream->limit(13);
  two.workers[1]->stream->limit(14); // computes step 14, which is never summed
  two.drain();
  two.all->abort();
  for (const auto& one : two.workers)
    one->engine.end();
  two.drain();
  const auto whole = state_at(13);
  for (const auto& one : two.workers) {
    CHECK(one->engine.applied() == step_id{13});
    CHECK(one->engine.state_digest() == whole);
  }
}

TEST_CASE(
    "step engine: aborted while residuals are fetched, a rank that has not all of them goes back (SE-11)") {
  job two{2, 10};
  two.begin(0, 50);
  std::uint64_t calls = 0;
  two.all->on_group_call = [&](std::uint32_t) {
    if (++calls == 2 * 8 + 3) two.all->abort(); // the third call of whoever gathers first at step 20
  };
  two.drain();
  const auto whole = state_at(10);
  for (const auto& one : two.workers) {
    CHECK(one->engine.idle());
    CHECK(one->observer.ended == run_end::aborted);
    CHECK(one->engine.applied() == step_id{10});
    CHECK(one->engine.state_digest() == whole);
  }
}

TEST_CASE("step engine: with Top-K snapshots are of whole states (SE-11)") {
  job three{3, 10};
  std::vector<std::string> seen;
  for (const auto& one : three.workers) {
    one->observer.snapshot_every = 10;
    one->observer.slots = 100;
  }
  three.begin(0, 30);
  three.drain();
  CHECK(three.workers[2]->observer.snapshots == std::vector{step_id{10}, step_id{20}, step_id{30}});
  CHECK(three.workers[2]->engine.state_digest() == state_at(30));
}

TEST_CASE(
    "step engine: with Top-K a sum that is not finite is refused, and the state is whole (SE-10, SE-11)") {
  job two{2, 10};
  two.all->corrupt = [&](std::span<float> sum) {
    if (two.all->completed == 25) sum[3] = nan;
  };
  two.begin(0, 50);
  two.drain();
  const auto whole = state_at(20);
  for (const auto& one : two.workers) {
    CHECK(one->observer.ended == run_end::refused);
    CHECK(one->observer.refused == step_id{25});
    CHECK(one->engine.applied() == step_id{20});
    CHECK(one->engine.state_digest() == whole);
  }
}

TEST_CASE("step engine: settings of Top-K that cannot work are refused") {
  auto settings = settings_of(1);
  CHECK(validate(settings));
  settings.top_k = 0.6;
  CHECK_FALSE(validate(settings));
  settings.top_k = nan;
  CHECK_FALSE(validate(settings));
  settings = settings_of(0);
  CHECK_FALSE(validate(settings));
  settings = settings_of(1);
  settings.wire = element_type::bfloat16;
  CHECK_FALSE(validate(settings));
  settings = settings_of(1);
  settings.shards = settings.global_batch = 128;
  CHECK_FALSE(validate(settings));
}

} // namespace
} // namespace troupe
