// Recovery job: a small training program on synthetic data, for `bench recovery` and for smoke tests.
#include "bench/recovery/recovery_job.hpp"
#include "cli/run/run.hpp"

int main(int argc, char** argv) {
  using namespace troupe;
  const auto data = [](const job_settings& settings) {
    return synthetic_source({.samples = 4096, .features = 784, .classes = 10, .seed = settings.seed});
  };
  training_graph graph{{.name = "recovery_job", .summary = "Trains a perceptron with 1 MiB of state."}};
  graph.dataset(data)
      .train([](model_context& context) -> std::unique_ptr<model> {
        return std::make_unique<examples::mlp>(context, bench::recovery_shape);
      })
      .optimize(sgd{.momentum = 0.9F}, cosine{.peak = 0.05F, .warmup_steps = 100});
  return run(graph, argc, argv);
}
