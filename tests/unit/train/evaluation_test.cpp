#include <stdexcept>

#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>

#include "runtime/data/synthetic_dataset.hpp"
#include "runtime/train/evaluation.hpp"
#include "tests/unit/train/doubles.hpp"

namespace troupe {
namespace {

using namespace troupe::testing;

struct fixture {
  parameter_store store{3};
  tiny_model kernels{store};
  synthetic_dataset data{{.samples = 103, .features = tiny_model::features, .classes = 2}};
  fixture() { store.freeze({}); }
};

TEST_CASE("evaluation: counts each sample once, with a last batch that is short (DE-1)") {
  fixture f;
  dataset_evaluation in_tens{f.data, 10};
  const auto result = in_tens.run(f.kernels, f.store);
  REQUIRE(result);
  CHECK(result->samples == 103);
  dataset_evaluation whole{f.data, 1000};
  CHECK(whole.run(f.kernels, f.store)->correct == result->correct);
  CHECK(whole.result().loss_sum == Catch::Approx(result->loss_sum).epsilon(1e-12));
  CHECK(accuracy(*result) == Catch::Approx(static_cast<double>(result->correct) / 103));
  CHECK(mean_loss(*result) == Catch::Approx(result->loss_sum / 103));
  const auto again = in_tens.run(f.kernels, f.store);
  CHECK(again->loss_sum == result->loss_sum);
}

TEST_CASE("evaluation: goes batch by batch where the caller shares its executor") {
  fixture f;
  dataset_evaluation piecewise{f.data, 10};
  int batches = 0;
  for (; !piecewise.finished(); ++batches)
    CHECK(piecewise.advance(f.kernels, f.store));
  CHECK(batches == 11);
  CHECK(piecewise.result().loss_sum == dataset_evaluation(f.data, 10).run(f.kernels, f.store)->loss_sum);
}

class broken_model final : public model {
public:
  shard_result train_shard(const batch_view&, const parameter_view&, gradient_sink&) override { return {}; }
  evaluation evaluate(const batch_view&, const parameter_view&) override {
    throw std::runtime_error{"kernel broke"};
  }
};

TEST_CASE("evaluation: what the model throws is an error") {
  fixture f;
  broken_model broken;
  const auto result = dataset_evaluation{f.data}.run(broken, f.store);
  REQUIRE_FALSE(result);
  CHECK(result.failure().text == "kernel broke");
  CHECK(mean_loss({}) == 0.0);
}

} // namespace
} // namespace troupe
