#include <cmath>
#include <limits>
#include <new>
#include <string>

#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include "tests/unit/train/doubles.hpp"

namespace troupe {
namespace {

using namespace troupe::testing;

step_settings small() {
  return {.shards = 4, .global_batch = 32, .rate = constant{0.1F}};
}

TEST_CASE("step engine: settings that cannot work are named with what is accepted") {
  const auto refusal = [](const step_settings& s) { return validate(s).failure().text; };
  CHECK(validate(small()).has_value());
  CHECK(refusal({.shards = 8, .global_batch = 100}) ==
        "global batch 100: accepted is a multiple of the 8 shards, such as 104");
  CHECK(refusal({.shards = 0}) == "shards 0: accepted is 1 to 4096");
  CHECK(refusal({.shards = 1, .global_batch = 0}).starts_with("global batch 0: accepted is 1 to "));
  CHECK(refusal({.accumulate = 0}).starts_with("accumulate 0: "));
  CHECK(refusal({.clip_norm = -1}).starts_with("clip norm -1"));
}

TEST_CASE("step engine: on_step is called once for every applied step, in order (SE-6)") {
  worker one{small(), sgd{}};
  test_collective all{4, 1, one.engine.contribution_size()};
  one.begin(all, 0, 1, 0, 20);
  CHECK(one.observer.answers == 0);
  drain(one);
  REQUIRE(one.observer.steps.size() == 20);
  for (std::uint64_t i = 0; i < 20; ++i)
    CHECK(one.observer.steps[i].step == step_id{i + 1});
  CHECK(one.observer.ended == run_end::finished);
  CHECK(one.observer.answers == 1);
  CHECK(one.engine.idle());
  CHECK(one.engine.applied() == step_id{20});
  CHECK(one.kernels.shards_computed == 80);
  CHECK(one.box.step_started == 20);
  CHECK(one.box.step_applied == 20);
  CHECK(one.observer.steps.back().loss < one.observer.steps.front().loss);
  const auto& seen = one.observer.steps[3];
  CHECK(seen.samples == 32);
  CHECK(seen.learning_rate == 0.1F);
  CHECK(seen.compute.count() > 0);
  CHECK(seen.total >= seen.compute + seen.comm_wait + seen.update + seen.data_wait);
}

TEST_CASE("step engine: a run that is at its last step ends, and never inside begin (SE-5)") {
  worker one{small(), sgd{}};
  test_collective all{4, 1, one.engine.contribution_size()};
  one.begin(all, 0, 1, 5, 5);
  CHECK(one.observer.answers == 0);
  drain(one);
  CHECK(one.observer.ended == run_end::finished);
  CHECK(one.observer.steps.empty());
}

TEST_CASE("step engine: waits for data without a step in flight, and goes on when there is some (SE-2)") {
  worker one{small(), sgd{}};
  test_collective all{4, 1, one.engine.contribution_size()};
  one.begin(all, 0, 1, 0, 10);
  one.stream->limit(3);
  drain(one);
  CHECK(one.engine.applied() == step_id{3});
  CHECK(one.queue.empty());
  const auto digest = one.engine.state_digest();
  one.clock.advance(std::chrono::milliseconds{5});
  CHECK(one.engine.state_digest() == digest);
  one.stream->feed_until(10);
  drain(one);
  CHECK(one.observer.ended == run_end::finished);
  CHECK(one.observer.steps[3].data_wait >= std::chrono::milliseconds{5});
  CHECK(one.observer.steps[3].compute < std::chrono::milliseconds{1});
}

TEST_CASE("step engine: a batch goes back before the all-reduce (SE-4)") {
  worker one{small(), sgd{}};
  worker other{small(), sgd{}};
  test_collective all{4, 2, one.engine.contribution_size()};
  one.begin(all, 0, 2, 0, 2);
  drain(one); // waits for the other rank
  CHECK_FALSE(one.engine.idle());
  CHECK(one.engine.applied() == step_id{0});
  CHECK(one.stream->outstanding() == 0);
  CHECK(one.stream->releases == 1);
  all.abort();
  CHECK(one.observer.ended == run_end::aborted);
}

TEST_CASE("step engine: of an aborted all-reduce nothing is applied, and it can begin again (SE-3)") {
  std::vector<std::unique_ptr<worker>> pair;
  for (int i = 0; i < 2; ++i)
    pair.push_back(std::make_unique<worker>(small(), sgd{}));
  test_collective first{4, 2, pair[0]->engine.contribution_size()};
  for (std::uint32_t rank = 0; rank < 2; ++rank)
    pair[rank]->begin(first, rank, 2, 0, 50);
  pair[1]->stream->limit(7);
  drain(pair); // rank 0 is in the all-reduce of step 8, rank 1 waits for data
  const auto digest = pair[0]->engine.state_digest();
  first.abort();
  pair[1]->engine.end();
  drain(pair);
  CHECK(pair[0]->observer.ended == run_end::aborted);
  CHECK(pair[1]->observer.ended == run_end::ended);
  CHECK(pair[0]->observer.ended_at == step_id{7});
  CHECK(pair[1]->observer.ended_at == step_id{7});
  CHECK(pair[0]->engine.state_digest() == digest);

  test_collective second{4, 1, pair[0]->engine.contribution_size()};
  pair[0]->begin(second, 0, 1, 7, 50, generation_id{2});
  drain(*pair[0]);
  worker undisturbed{small(), sgd{}};
  test_collective quiet{4, 1, undisturbed.engine.contribution_size()};
  undisturbed.begin(quiet, 0, 1, 0, 50);
  drain(undisturbed);
  CHECK(pair[0]->engine.state_digest() == undisturbed.engine.state_digest());
  CHECK(pair[0]->observer.steps.size() == 50);
}

TEST_CASE("step engine: begins again inside the answer to the run before (SE-5)") {
  worker one{small(), sgd{}};
  test_collective all{4, 1, one.engine.contribution_size()};
  one.observer.on_answer = [&] {
    if (one.observer.answers == 1) one.begin(all, 0, 1, 5, 10, generation_id{2});
  };
  one.begin(all, 0, 1, 0, 5);
  drain(one);
  CHECK(one.observer.answers == 2);
  CHECK(one.engine.applied() == step_id{10});
}

TEST_CASE("step engine: end stops between steps, at once where nothing is in flight (SE-2)") {
  worker one{small(), sgd{}};
  test_collective all{4, 1, one.engine.contribution_size()};
  one.engine.end(); // idle: ignored
  one.begin(all, 0, 1, 0, 1000);
  for (int i = 0; i < 5; ++i)
    one.queue.run_one();
  one.engine.end();
  CHECK(one.observer.answers == 0);
  drain(one);
  CHECK(one.observer.ended == run_end::ended);
  CHECK(one.observer.ended_at == step_id{one.observer.steps.size()});
  one.begin(all, 0, 1, one.engine.applied().value(), 1000);
  CHECK_FALSE(one.engine.idle());
  one.engine.end();
  drain(one);
  CHECK(one.observer.answers == 2);
}

TEST_CASE("step engine: what a model or a hook throws becomes on_failed, and it can begin again (SE-5)") {
  worker one{small(), sgd{}};
  test_collective all{4, 1, one.engine.contribution_size()};
  SECTION("the model") {
    one.kernels.on_shard = [&] {
      if (one.kernels.shards_computed == 10) throw std::runtime_error{"kernel broke"};
    };
  }
  SECTION("before_step") {
    one.observer.on_before = [](step_id s) {
      if (s == step_id{3}) throw std::runtime_error{"kernel broke"};
    };
  }
  one.begin(all, 0, 1, 0, 10);
  drain(one);
  REQUIRE(one.observer.failure);
  CHECK(one.observer.failure->code == errc::actor_failed);
  CHECK(one.observer.failure->text == "kernel broke");
  CHECK(one.observer.ended_at == step_id{2});
  CHECK(one.observer.answers == 1);
  CHECK(one.stream->outstanding() == 0);
  one.kernels.on_shard = {};
  one.observer.on_before = {};
  one.begin(all, 0, 1, 2, 10);
  drain(one);
  CHECK(one.observer.ended == run_end::finished);
  CHECK(one.observer.steps.size() == 10);
}

TEST_CASE("step engine: a hook that throws after the update leaves the step applied (SE-1)") {
  worker one{small(), sgd{}};
  test_collective all{4, 1, one.engine.contribution_size()};
  one.observer.on_applied = [](const observation& what) {
    if (what.step == step_id{4}) throw std::runtime_error{"sink broke"};
  };
  one.begin(all, 0, 1, 0, 10);
  drain(one);
  CHECK(one.observer.failure);
  CHECK(one.observer.ended_at == step_id{4});
}

TEST_CASE("step engine: a gradient that was not handed over is named (SH-3)") {
  worker one{small(), sgd{}};
  test_collective all{4, 1, one.engine.contribution_size()};
  one.kernels.forget_bias = true;
  one.begin(all, 0, 1, 0, 10);
  drain(one);
  REQUIRE(one.observer.failure);
  CHECK(one.observer.failure->text.find("'bias'") != std::string::npos);
}

TEST_CASE("step engine: a sum of other samples than the step's is not applied (SE-1)") {
  worker one{small(), sgd{}};
  test_collective all{4, 1, one.engine.contribution_size()};
  const auto tail = one.store.layout().part_elements;
  all.corrupt = [&](std::span<float> sum) {
    if (all.completed == 3) sum[tail + GENERATE(std::size_t{2}, std::size_t{3})] += 1;
  };
  one.begin(all, 0, 1, 0, 10);
  drain(one);
  REQUIRE(one.observer.failure);
  CHECK(one.observer.failure->code == errc::internal);
  CHECK(one.observer.ended_at == step_id{2});
}

TEST_CASE("step engine: a loss that is no number is reported, and the policy is the caller's") {
  worker one{small(), sgd{}};
  test_collective all{4, 1, one.engine.contribution_size()};
  all.corrupt = [&](std::span<float> sum) {
    if (all.completed == 3) sum[one.store.layout().part_elements] = std::numeric_limits<float>::quiet_NaN();
  };
  one.begin(all, 0, 1, 0, 4);
  drain(one);
  CHECK_FALSE(one.observer.steps[1].non_finite);
  CHECK(one.observer.steps[2].non_finite);
  CHECK(one.observer.ended == run_end::finished);
}

TEST_CASE("step engine: pauses while no snapshot slot is free, and counts the stall (SE-2)") {
  worker one{small(), sgd{}};
  test_collective all{4, 1, one.engine.contribution_size()};
  one.observer.snapshot_every = 5;
  one.observer.slots = 1;
  one.begin(all, 0, 1, 0, 10);
  drain(one);
  CHECK(one.observer.snapshots == std::vector{step_id{5}});
  CHECK(one.engine.applied() == step_id{10}); // applied, not finished: its snapshot is due
  CHECK(one.observer.answers == 0);
  one.clock.advance(std::chrono::milliseconds{7});
  one.engine.resume(); // still no slot
  drain(one);
  CHECK(one.observer.answers == 0);
  one.observer.slots = 1;
  one.engine.resume();
  drain(one);
  CHECK(one.observer.snapshots.back() == step_id{10});
  CHECK(one.observer.last_stall >= std::chrono::milliseconds{7});
  CHECK(one.observer.ended == run_end::finished);
}

TEST_CASE("step engine: end leaves a pause") {
  worker one{small(), sgd{}};
  test_collective all{4, 1, one.engine.contribution_size()};
  one.observer.snapshot_every = 5;
  one.begin(all, 0, 1, 0, 10);
  drain(one);
  one.engine.end();
  one.engine.resume();
  drain(one);
  CHECK(one.observer.ended == run_end::ended);
  CHECK(one.observer.ended_at == step_id{5});
}

TEST_CASE("step engine: clipping scales the mean gradient down to the norm, and says what it was") {
  auto settings = small();
  settings.clip_norm = 0.01F;
  worker clipped{settings, sgd{.momentum = 0}};
  test_collective all{4, 1, clipped.engine.contribution_size()};
  const std::vector before(clipped.store.parameters().begin(), clipped.store.parameters().end());
  clipped.begin(all, 0, 1, 0, 1);
  drain(clipped);
  double moved = 0;
  for (std::size_t i = 0; i < before.size(); ++i)
    moved += std::pow(double{clipped.store.parameters()[i]} - double{before[i]}, 2);
  CHECK(clipped.observer.steps[0].gradient_norm > 0.01);
  CHECK(std::sqrt(moved) == Catch::Approx(0.1 * 0.01).epsilon(1e-3));
}

TEST_CASE("step engine: the receipt of another sum than the step's own is refused, by rank and step (SE-9)") {
  worker one{small(), sgd{}};
  test_collective all{4, 1, one.engine.contribution_size()};
  one.begin(all, 0, 1, 0, 10);
  one.observer.on_applied = [&](const observation& what) {
    if (what.step == step_id{3}) all.skip_receipt();
  };
  drain(one);
  REQUIRE(one.observer.failure);
  CHECK(one.observer.failure->code == errc::internal);
  CHECK(one.observer.failure->text ==
        "SE-9: rank 0 was not in the sum of step 4: it holds the receipt of sum 5, not of sum 4");
  CHECK(one.observer.ended_at == step_id{3});
}

TEST_CASE("step engine: a sum that is not finite is applied by nobody, and the one to blame knows (SE-10)") {
  std::vector<std::unique_ptr<worker>> pair;
  for (int i = 0; i < 2; ++i)
    pair.push_back(std::make_unique<worker>(small(), sgd{}));
  test_collective all{4, 2, pair[0]->engine.contribution_size()};
  for (std::uint32_t rank = 0; rank < 2; ++rank)
    pair[rank]->begin(all, rank, 2, 0, 10);
  bool struck = false;
  all.before_sum = [&] {
    if (all.completed != 4 || std::exchange(struck, true)) return;
    all.rank(1).contribution(0)[2] = std::numeric_limits<float>::infinity();
  };
  drain(pair);
  for (const auto& one : pair) {
    CHECK(one->observer.ended == run_end::refused);
    CHECK(one->observer.ended_at == step_id{4});
    CHECK(one->observer.refused == step_id{5});
  }
  CHECK_FALSE(pair[0]->observer.refused_ours);
  CHECK(pair[1]->observer.refused_ours);

  test_collective next{4, 2, pair[0]->engine.contribution_size()}; // computed again: as if nothing had been
  for (std::uint32_t rank = 0; rank < 2; ++rank)
    pair[rank]->begin(next, rank, 2, 4, 10, generation_id{2});
  drain(pair);
  worker undisturbed{small(), sgd{}};
  test_collective quiet{4, 1, undisturbed.engine.contribution_size()};
  undisturbed.begin(quiet, 0, 1, 0, 10);
  drain(undisturbed);
  CHECK(pair[1]->engine.state_digest() == undisturbed.engine.state_digest());
}

TEST_CASE("step engine: a failed allocation is told as one") {
  worker one{small(), sgd{}};
  test_collective all{4, 1, one.engine.contribution_size()};
  one.observer.on_before = [](step_id computing) {
    if (computing == step_id{3}) throw std::bad_alloc{};
  };
  one.begin(all, 0, 1, 0, 10);
  drain(one);
  REQUIRE(one.observer.failure);
  CHECK(one.observer.failure->code == errc::out_of_memory);
}

TEST_CASE("step engine: accumulating k global batches is one step on the mean over all of them") {
  auto settings = small();
  settings.accumulate = 3;
  worker many{settings, sgd{.momentum = 0}};
  test_collective all{4, 1, many.engine.contribution_size()};
  many.begin(all, 0, 1, 0, 4);
  drain(many);
  CHECK(many.observer.steps.size() == 4);
  CHECK(all.completed == 12);
  CHECK(many.observer.steps[0].samples == 96);

  auto whole = small();
  whole.global_batch = 96; // the same samples in the same order, in one batch
  worker one{whole, sgd{.momentum = 0}};
  test_collective single{4, 1, one.engine.contribution_size()};
  one.begin(single, 0, 1, 0, 4);
  drain(one);
  CHECK(many.observer.steps[3].loss == Catch::Approx(one.observer.steps[3].loss).epsilon(1e-6));
  for (std::size_t i = 0; i < tiny_model::features; ++i)
    CHECK(double{many.store.parameters()[i]} ==
          Catch::Approx(double{one.store.parameters()[i]}).epsilon(1e-4));
}

} // namespace
} // namespace troupe
