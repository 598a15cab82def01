// Fashion-MNIST: a multi-layer perceptron, trained by workers that may be killed at any time.
#include "examples/fashion_mnist/mlp.hpp"
#include "troupe/troupe.hpp"

namespace {

using namespace troupe;

// `part` is "train" or "t10k", as the dataset's files are named.
dataset_source images(const job_settings& settings, const std::string& part) {
  const auto& directory = settings.extra.at("data");
  auto source = idx_source({.name = "fashion_mnist_" + part,
                            .images = directory + "/" + part + "-images-idx3-ubyte.gz",
                            .labels = directory + "/" + part + "-labels-idx1-ubyte.gz",
                            .scaling = {0.286F, 0.353F}}); // mean and deviation of the training pixels
  source.stage = [directory, read = std::move(source.stage)](storage& files, staging& stage) {
    auto staged = read(files, stage);
    if (staged) return staged;
    return expected<staged_source>{
        error{staged.failure().code, "--data " + directory + ": " + staged.failure().text}};
  };
  return source;
}

} // namespace

int main(int argc, char** argv) {
  training_graph graph{
      {.name = "fashion_mnist", .summary = "Trains a perceptron 784-256-10 on Fashion-MNIST."}};
  graph.option({"data", "DIR", "directory of the four IDX files", "/usr/share/datasets/fashion-mnist"})
      .dataset([](const job_settings& s) { return images(s, "train"); })
      .test([](const job_settings& s) { return images(s, "t10k"); })
      .prefetch({.ready_batches = 4})
      .train<examples::mlp>()
      .optimize(sgd{.momentum = 0.9F}, cosine{.peak = 0.05F, .warmup_steps = 100})
      .supervise({.restarts_max = 10, .period = std::chrono::seconds{60}});
  return run(graph, argc, argv);
}
