#include <memory>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include "examples/fashion_mnist/mlp.hpp"
#include "tests/unit/train/allocation_counter.hpp"
#include "tests/unit/train/doubles.hpp"

namespace troupe {
namespace {

using namespace troupe::testing;

TEST_CASE("allocation counter: sees operator new and malloc") {
  const auto before = allocations();
  const auto made = std::make_unique<std::vector<int>>(100);
  void* volatile memory = std::malloc(100);
  std::free(memory);
  CHECK(allocations() - before == 3);
}

TEST_CASE("step engine: a step allocates nothing (SE-8)") {
  for (const optimizer_settings& optimizer : {optimizer_settings{sgd{}}, optimizer_settings{adamw{}}}) {
    const step_settings settings{.shards = 8, .global_batch = 64, .accumulate = 2, .clip_norm = 0.1F};
    std::vector<std::unique_ptr<worker>> workers;
    for (int i = 0; i < 3; ++i)
      workers.push_back(std::make_unique<worker>(settings, optimizer));
    test_collective all{8, 3, workers[0]->engine.contribution_size()};
    std::uint64_t at_step_10 = 0;
    std::uint64_t at_step_500 = 0;
    workers[0]->observer.on_applied = [&](const observation& what) {
      if (what.step == step_id{10}) at_step_10 = allocations();
      if (what.step == step_id{500}) at_step_500 = allocations();
    };
    for (std::uint32_t rank = 0; rank < 3; ++rank)
      workers[rank]->begin(all, rank, 3, 0, 501);
    drain(workers);
    CHECK(workers[0]->observer.applied == 501);
    CHECK(at_step_500 - at_step_10 == 0);
  }
}

class flat_sink final : public gradient_sink {
public:
  explicit flat_sink(const arena_layout& layout)
      : layout_{layout}
      , memory(layout.part_elements) {}
  std::span<float> gradient(parameter p) override {
    const auto& spec = layout_.parameters[p.index()];
    return std::span{memory}.subspan(spec.offset, spec.elements);
  }
  void ready(parameter) override {}

private:
  const arena_layout& layout_;

public:
  std::vector<float> memory;
};

TEST_CASE("mlp: no call allocates, whatever the size of the shard (ML-2)") {
  parameter_store store{1};
  examples::mlp model{store};
  store.freeze({});
  flat_sink sink{store.layout()};
  for (const std::size_t samples : {1U, 5U, 16U, 128U, 300U, 1024U}) {
    const std::vector<float> inputs(samples * 784, 0.25F);
    const std::vector<std::uint8_t> labels(samples, 3);
    const batch_view shard{samples, 784, inputs, labels, 0};
    const auto before = allocations();
    (void)model.train_shard(shard, store, sink);
    (void)model.evaluate(shard, store);
    CHECK(allocations() - before == 0);
  }
}

} // namespace
} // namespace troupe
