// Overlap job: a training program of eight layers, one of whose processes kills itself in the middle of a
// backward, once.
//
// TROUPE_TEST_DIE=SHARD:LAYERS:MARK: in the SHARD-th shard that a process computes, after LAYERS layers are
// ready, whoever makes the file MARK gets SIGKILL. Nobody does where the file is there already.
#include <array>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>

#include <fcntl.h>
#include <unistd.h>

#include "troupe/troupe.hpp"

namespace {

constexpr std::size_t features = 16;
constexpr std::size_t layers = 8;
constexpr std::size_t layer_elements = 1024; // 4 KiB

struct death {
  unsigned long shard{0};
  unsigned long layers{0};
  std::string mark{};

  static death from_environment() {
    const char* text = std::getenv("TROUPE_TEST_DIE");
    if (text == nullptr) return {};
    char* rest = nullptr;
    death made;
    made.shard = std::strtoul(text, &rest, 10);
    made.layers = std::strtoul(rest + 1, &rest, 10);
    made.mark = rest + 1;
    return made;
  }
  void strike() const {
    if (::open(mark.c_str(), O_CREAT | O_EXCL | O_WRONLY, 0600) >= 0) std::raise(SIGKILL);
  }
};

// Each layer learns a mean of its own of the inputs; one depends on the one above it.
class layered final : public troupe::model {
public:
  explicit layered(troupe::model_context& context) {
    for (std::size_t i = 0; i < layers; ++i) {
      const auto name = "layer" + std::to_string(i);
      parameters_[i] = context.declare(name, {layer_elements}, context.uniform(name, 0.5F));
    }
  }
  troupe::shard_result train_shard(const troupe::batch_view& shard, const troupe::parameter_view& parameters,
                                   troupe::gradient_sink& gradients) override {
    ++shards_;
    double loss = 0;
    for (std::size_t layer = layers; layer-- > 0;) {
      const auto values = parameters.values(parameters_[layer]);
      const auto above = parameters.values(parameters_[(layer + 1) % layers]);
      const auto into = gradients.gradient(parameters_[layer]);
      for (std::size_t i = 0; i < layer_elements; ++i) {
        into[i] = 0;
        for (std::size_t sample = 0; sample < shard.samples; ++sample) {
          const float wrong = values[i] + 0.25F * above[i] - shard.inputs[sample * features + i % features];
          into[i] += wrong;
          loss += 0.5 * double{wrong} * double{wrong} / (layers * layer_elements);
        }
      }
      gradients.ready(parameters_[layer]);
      if (shards_ == death_.shard && layers - layer == death_.layers) death_.strike();
    }
    return {loss};
  }
  troupe::evaluation evaluate(const troupe::batch_view& batch, const troupe::parameter_view&) override {
    return {.samples = batch.samples};
  }

private:
  std::array<troupe::parameter, layers> parameters_;
  const death death_{death::from_environment()};
  unsigned long shards_{0};
};

} // namespace

int main(int argc, char** argv) {
  using namespace troupe;
  training_graph graph{{.name = "overlap_job", .summary = "Eight layers, for tests."}};
  const synthetic_shape data{.samples = 4096, .features = features, .classes = 4};
  graph.dataset([data](const job_settings&) { return synthetic_source(data); })
      .prefetch({.ready_batches = 4})
      .train<layered>()
      .optimize(sgd{.momentum = 0.9F}, constant{0.05F})
      .supervise({.restarts_max = 10, .period = std::chrono::seconds{60}});
  return run(graph, argc, argv);
}
