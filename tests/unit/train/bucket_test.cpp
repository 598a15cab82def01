// Buckets: which gradients are summed together, and when their sum starts.
#include <string>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include "runtime/train/bucket_plan.hpp"
#include "runtime/train/limits.hpp"
#include "tests/unit/train/doubles.hpp"

namespace troupe {
namespace {

using namespace troupe::testing;

constexpr std::size_t layers = 6;
constexpr std::size_t layer_elements = 40; // 48 with padding

// One parameter a layer; backward finishes the last one first, and tells `on_layer` after each.
class layered_model final : public model {
public:
  explicit layered_model(model_context& context) {
    for (std::size_t i = 0; i < layers; ++i)
      parameters_.push_back(
          context.declare("layer" + std::to_string(i), {layer_elements}, model_context::zeros()));
  }
  shard_result train_shard(const batch_view& shard, const parameter_view&, gradient_sink& sink) override {
    ++shards;
    ready_layers = 0;
    for (auto i = layers; i-- > 0;) {
      std::ranges::fill(sink.gradient(parameters_[i]),
                        shard.inputs[i] * static_cast<float>(shards) + static_cast<float>(i));
      ++ready_layers;
      sink.ready(parameters_[i]);
    }
    return {0.5};
  }
  evaluation evaluate(const batch_view& batch, const parameter_view&) override {
    return {.samples = batch.samples};
  }
  std::uint64_t shards{0};
  std::size_t ready_layers{0};

private:
  std::vector<parameter> parameters_;
};

arena_layout layout_of(const std::vector<std::size_t>& sizes) {
  arena_layout made;
  for (const auto size : sizes) {
    made.parameters.push_back({.elements = size, .offset = made.part_elements});
    made.part_elements += (size + 15) / 16 * 16;
  }
  return made;
}

TEST_CASE("bucket plan: from the last parameter down, each as large as asked for (BP-1, BP-2)") {
  const auto layout = layout_of({100, 16, 16, 30, 500, 16});
  CHECK(bucket_plan::make(layout, 0).early.empty());
  const auto plan = bucket_plan::make(layout, 128);
  CHECK(plan.early == std::vector<bucket>{{{176, 704}, 2}, {{144, 176}, 1}, {{112, 144}, 2}});
  CHECK(plan.of == std::vector<std::size_t>{3, 2, 2, 1, 0, 0});
  CHECK(bucket_plan::make(layout, 1U << 20).early.empty()); // one bucket: it goes with the sum's end
}

TEST_CASE("bucket plan: never more buckets than the limit (BP-2)") {
  const auto plan = bucket_plan::make(layout_of(std::vector<std::size_t>(5000, 16)), 64);
  CHECK(plan.early.size() < limits::buckets_max);
  CHECK(plan.early.size() >= limits::buckets_max / 2);
}

struct run_of_layers {
  explicit run_of_layers(std::size_t bucket_bytes)
      : settings{.shards = 4, .global_batch = 32, .bucket_bytes = bucket_bytes, .rate = constant{0.1F}} {
    store.freeze({});
  }
  step_settings settings;
  parameter_store store{7};
  layered_model kernels{store};
};

TEST_CASE("shard pass: a bucket is begun in the last shard's backward, and not written after (SH-4)") {
  for (const std::uint32_t world : {1U, 2U, 3U, 4U, 5U}) {
    run_of_layers made{2 * 48 * sizeof(float)};
    test_collective all{4, world, contribution_elements(made.store.layout().part_elements)};
    run_of_layers whole{0};
    test_collective known{4, world, contribution_elements(made.store.layout().part_elements)};
    std::vector<std::vector<std::size_t>> layers_at(world);
    all.on_part = [&](std::uint32_t rank, element_range part) {
      layers_at[rank].push_back(made.kernels.ready_layers);
      CHECK(part.size() == 96);
    };
    std::vector<float> sums[2];
    for (std::uint32_t rank = 0; rank < world; ++rank) {
      const auto one_rank = [&](run_of_layers& run, test_collective& meeting, std::vector<float>& sum) {
        shard_pass pass{run.store, 4, run.settings.bucket_bytes};
        pass.plan(rank, world, meeting.rank(rank));
        test_stream stream{run.settings, layers, generation_id{1}, rank, world, 0};
        run.kernels.shards = pass.range().first;
        batch given;
        if (pass.range().count > 0) given = *stream.get().try_next(generation_id{1}, step_id{0});
        pass.compute(run.kernels, given, 3, meeting.rank(rank));
        meeting.rank(rank).all_reduce([&](expected<reduction> made_sum) {
          if (made_sum) sum.assign(made_sum->sum.begin(), made_sum->sum.end());
        });
      };
      one_rank(made, all, sums[0]);
      one_rank(whole, known, sums[1]);
    }
    CHECK(!sums[0].empty());
    CHECK(sums[0] == sums[1]);
    CHECK(all.parts == 2 * world);
    for (std::uint32_t rank = 0; rank < std::min(world, 4U); ++rank)
      CHECK(layers_at[rank] == std::vector<std::size_t>{2, 4});
  }
}

} // namespace
} // namespace troupe
