// MLP benchmark: how fast one logical shard is computed, and how well two threads share the machine.
//
// Prints GFLOP/s of forward and backward for small and large shards, the time of an optimizer update, and
// the throughput of two independent threads over one.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <thread>
#include <vector>

#include "examples/fashion_mnist/mlp.hpp"
#include "runtime/base/counter_rng.hpp"
#include "runtime/train/optimizer.hpp"
#include "runtime/train/parameter_store.hpp"

namespace {

using namespace troupe;

class flat_sink final : public gradient_sink {
public:
  explicit flat_sink(const arena_layout& layout)
      : layout_{layout}
      , memory_(layout.part_elements) {}
  std::span<float> gradient(parameter p) override {
    const auto& spec = layout_.parameters[p.index()];
    return std::span{memory_}.subspan(spec.offset, spec.elements);
  }
  void ready(parameter) override {}
  std::span<const float> all() const { return memory_; }

private:
  const arena_layout& layout_;
  std::vector<float> memory_;
};

// One model with its parameters and one shard of random data.
struct workbench {
  parameter_store store{1};
  examples::mlp model{store};
  std::vector<float> inputs;
  std::vector<std::uint8_t> labels;
  std::unique_ptr<const optimizer> optimize{std::move(make_optimizer(sgd{}).value())};
  std::unique_ptr<flat_sink> sink;

  explicit workbench(std::size_t samples)
      : inputs(samples * 784)
      , labels(samples) {
    store.freeze(optimize->slot_names());
    sink = std::make_unique<flat_sink>(store.layout());
    const counter_rng rng{1, 2};
    for (std::size_t i = 0; i < inputs.size(); ++i)
      inputs[i] = rng.uniform(i);
    for (std::size_t i = 0; i < labels.size(); ++i)
      labels[i] = static_cast<std::uint8_t>(i % 10);
  }
  void train_shard() { model.train_shard({labels.size(), 784, inputs, labels, 0}, store, *sink); }
  void apply() {
    optimize->apply({.parameters = store.parameters(),
                     .slots = store.arena().subspan(store.layout().part_elements),
                     .gradient = sink->all(),
                     .scale = 0.0F,
                     .rate = 0.0F});
  }
};

template <class Work>
double seconds_each(std::size_t repeats, Work&& work) {
  const auto begin = std::chrono::steady_clock::now();
  for (std::size_t i = 0; i < repeats; ++i)
    work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() /
         static_cast<double>(repeats);
}

// Median of 9 runs of about 50 ms.
template <class Work>
double median_seconds(Work&& work) {
  const double once = seconds_each(3, work);
  const auto repeats = static_cast<std::size_t>(std::max(1.0, 0.05 / once));
  std::vector<double> runs(9);
  for (auto& run : runs)
    run = seconds_each(repeats, work);
  std::ranges::sort(runs);
  return runs[runs.size() / 2];
}

// Shards a second by `threads` threads, each with a model of its own.
double throughput(unsigned threads, std::size_t samples) {
  std::vector<std::unique_ptr<workbench>> benches;
  for (unsigned i = 0; i < threads; ++i)
    benches.push_back(std::make_unique<workbench>(samples));
  std::vector<double> rates(threads);
  std::vector<std::jthread> running;
  for (unsigned i = 0; i < threads; ++i)
    running.emplace_back(
        [&rates, &benches, i] { rates[i] = 1.0 / median_seconds([&] { benches[i]->train_shard(); }); });
  running.clear();
  double sum = 0;
  for (const auto rate : rates)
    sum += rate;
  return sum;
}

} // namespace

int main() {
  std::printf("%8s %14s %10s %16s %20s\n", "samples", "us per shard", "GFLOP/s", "samples/s",
              "2 threads / 1");
  for (const std::size_t samples : {16U, 32U, 128U, 1024U}) {
    workbench bench{samples};
    const double seconds = median_seconds([&] { bench.train_shard(); });
    // Forward: 2 products; backward: their weight gradients, and the hidden error.
    const double flop = 2.0 * static_cast<double>(samples) * (2 * 784 * 256 + 3 * 256 * 10);
    std::printf("%8zu %14.1f %10.1f %16.0f %20.2f\n", samples, seconds * 1e6, flop / seconds * 1e-9,
                static_cast<double>(samples) / seconds, throughput(2, samples) / throughput(1, samples));
  }
  workbench bench{16};
  std::printf("optimizer update (203,530 parameters, momentum): %.1f us\n",
              median_seconds([&] { bench.apply(); }) * 1e6);
}
