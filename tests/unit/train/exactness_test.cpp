#include <string>

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include "tests/unit/train/doubles.hpp"

namespace troupe {
namespace {

using namespace troupe::testing;

struct recipe {
  step_settings settings;
  optimizer_settings optimizer;
};

std::vector<recipe> recipes() {
  const cosine rate{.peak = 0.1F, .warmup_steps = 10, .total_steps = 50};
  const step_settings plain{.shards = 8, .global_batch = 64, .rate = rate};
  auto clipped = plain;
  clipped.clip_norm = 0.02F;
  auto accumulated = clipped;
  accumulated.accumulate = 3;
  auto odd = plain;
  odd.shards = 7;
  odd.global_batch = 63;
  return {{plain, sgd{}},       {clipped, sgd{.weight_decay = 0.01F, .nesterov = true}},
          {plain, adamw{}},     {clipped, adamw{}},
          {accumulated, sgd{}}, {odd, adamw{}}};
}

// A job whose membership changes: runs with each world size up to the step given.
struct stretch {
  std::uint32_t world;
  std::uint64_t until;
};

std::string run(const recipe& made, const std::vector<stretch>& stretches, bool abort_between = false) {
  std::vector<float> state; // what a replacement is healed from
  std::uint64_t step = 0;
  std::string digest;
  std::uint64_t generation = 0;
  for (const auto& [world, until] : stretches) {
    std::vector<std::unique_ptr<worker>> workers;
    for (std::uint32_t rank = 0; rank < world; ++rank)
      workers.push_back(std::make_unique<worker>(made.settings, made.optimizer));
    auto shape = workers[0]->engine.shape();
    shape.world = world;
    test_collective all{shape};
    ++generation;
    for (std::uint32_t rank = 0; rank < world; ++rank) {
      auto& one = *workers[rank];
      if (!state.empty()) std::ranges::copy(state, one.store.arena().begin());
      one.begin(all, rank, world, step, 50, generation_id{generation});
      // Up to `until`; where the stretch ends in an abort all but rank 0 are in the all-reduce after it.
      if (until < 50)
        one.stream->limit(until * made.settings.accumulate + (abort_between && rank > 0 ? 1 : 0));
    }
    drain(workers);
    if (abort_between) all.abort();
    for (const auto& one : workers)
      one->engine.end();
    drain(workers);
    for (const auto& one : workers) {
      CHECK(one->engine.idle());
      CHECK(one->engine.applied() == step_id{until});
      if (one == workers.front()) digest = one->engine.state_digest();
      CHECK(one->engine.state_digest() == digest);
    }
    state.assign(workers[0]->store.arena().begin(), workers[0]->store.arena().end());
    step = until;
  }
  return digest;
}

TEST_CASE("step engine: 1, 2, 3 and 4 ranks give the same bits (SE-7)") {
  for (const auto& made : recipes()) {
    const auto alone = run(made, {{1, 50}});
    for (const std::uint32_t world : {2U, 3U, 4U, 5U, 8U, 9U})
      CHECK(run(made, {{world, 50}}) == alone);
  }
}

TEST_CASE("step engine: 4, then 2, then 3 ranks give the same bits as one (SE-7)") {
  for (const auto& made : recipes()) {
    const auto alone = run(made, {{1, 50}});
    CHECK(run(made, {{4, 17}, {2, 31}, {3, 50}}) == alone);
    CHECK(run(made, {{4, 17}, {2, 18}, {3, 50}}, true) == alone);
  }
}

TEST_CASE("step engine: buckets change no bit, for any number of ranks (SE-7, SH-4)") {
  for (auto made : recipes()) {
    const auto whole = run(made, {{1, 50}});
    made.settings.bucket_bytes = 64;
    for (const std::uint32_t world : {1U, 2U, 3U, 4U, 8U, 9U})
      CHECK(run(made, {{world, 50}}) == whole);
    CHECK(run(made, {{4, 17}, {2, 18}, {3, 50}}, true) == whole);
  }
}

TEST_CASE("step engine: rounded gradients give the same bits for any number of ranks, other ones than exact "
          "gradients (SE-7, SH-5)") {
  for (const auto wire : {element_type::float16, element_type::bfloat16}) {
    for (auto made : recipes()) {
      const auto exact = run(made, {{1, 50}});
      made.settings.wire = wire;
      const auto alone = run(made, {{1, 50}});
      CHECK(alone != exact);
      for (const std::uint32_t world : {2U, 3U, 4U, 5U, 8U, 9U})
        CHECK(run(made, {{world, 50}}) == alone);
      made.settings.bucket_bytes = 64;
      CHECK(run(made, {{4, 17}, {2, 18}, {3, 50}}, true) == alone);
    }
  }
}

TEST_CASE("step engine: Top-K gives the same bits for any number of ranks, and after any change of them "
          "(SE-7, SH-6, SE-11)") {
  for (auto made : recipes()) {
    const auto all = run(made, {{1, 50}});
    made.settings.top_k = 0.3;
    const auto alone = run(made, {{1, 50}});
    CHECK(alone != all);
    for (const std::uint32_t world : {2U, 3U, 4U, 5U, 8U, 9U})
      CHECK(run(made, {{world, 50}}) == alone);
    CHECK(run(made, {{4, 17}, {2, 18}, {3, 50}}, true) == alone);
    made.settings.bucket_bytes = 64; // nothing can be begun early
    made.settings.whole_every = 7;
    CHECK(run(made, {{4, 14}, {2, 35}, {3, 50}}, true) == alone);
  }
}

TEST_CASE("step engine: other settings give other bits") {
  auto made = recipes();
  std::vector<std::string> digests;
  for (const auto& one : made)
    digests.push_back(run(one, {{1, 50}}));
  std::ranges::sort(digests);
  CHECK(std::ranges::adjacent_find(digests) == digests.end());
}

} // namespace
} // namespace troupe
