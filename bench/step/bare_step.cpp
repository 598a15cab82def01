// Bare step: the kernels of the Fashion-MNIST example in a plain loop; the baseline of `troupe bench step`.
//
// One thread: forward and backward of every logical shard, the additions of the canonical tree, the
// optimizer. No engine, no collective, no actors, no reader: four batches of real samples lie ready in memory
// and are used in turn, as a training program's reader would at best provide them.
// Prints one JSON object.
#include <chrono>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
#include <sys/resource.h>

#include "examples/fashion_mnist/mlp.hpp"
#include "runtime/data/idx_dataset.hpp"
#include "runtime/data/sample_order.hpp"
#include "runtime/host/posix_storage.hpp"
#include "runtime/policy/canonical_sum.hpp"
#include "runtime/train/optimizer.hpp"
#include "runtime/train/parameter_store.hpp"

namespace {

using namespace troupe;

struct options {
  std::uint64_t steps{200};
  std::uint32_t global_batch{128};
  std::uint32_t shards{8};
  std::uint64_t seed{7};
  std::string data{"/usr/share/datasets/fashion-mnist"};
};

constexpr std::size_t ready_batches = 4; // as the example reads ahead
constexpr float rate = 0.05F;

struct memory_batch {
  std::vector<float> inputs;
  std::vector<std::uint8_t> labels;
};

class flat_sink final : public gradient_sink {
public:
  flat_sink(const arena_layout& layout, std::span<float> into)
      : layout_{layout}
      , into_{into} {}
  std::span<float> gradient(parameter p) override {
    const auto& spec = layout_.parameters[p.index()];
    return into_.subspan(spec.offset, spec.elements);
  }
  void ready(parameter) override {}

private:
  const arena_layout& layout_;
  std::span<float> into_;
};

expected<std::vector<memory_batch>> gather(const options& what) {
  posix_storage files;
  memory_staging memory;
  auto data = stage_idx(files, memory,
                        {.name = "fashion_mnist_train",
                         .images = what.data + "/train-images-idx3-ubyte.gz",
                         .labels = what.data + "/train-labels-idx1-ubyte.gz",
                         .scaling = {0.286F, 0.353F}});
  if (!data) return data.failure();
  sample_order order{(*data)->samples(), what.seed};
  std::vector<memory_batch> batches(ready_batches);
  std::uint64_t number = 0;
  for (auto& one : batches) {
    one.inputs.resize(std::size_t{what.global_batch} * (*data)->features());
    for (std::size_t i = 0; i < what.global_batch; ++i) {
      const auto index = order.index_of(number++);
      const auto place = std::span{one.inputs}.subspan(i * (*data)->features(), (*data)->features());
      if (auto read = (*data)->read_into(index, place); !read) return read.failure();
      one.labels.push_back((*data)->label(index));
    }
  }
  return batches;
}

class bare_loop {
public:
  explicit bare_loop(const options& what)
      : what_{what}
      , rule_{std::move(make_optimizer(sgd{.momentum = 0.9F}).value())} {
    store_.freeze(rule_->slot_names());
    sums_ = touched_memory{local_buffers(what.shards) * store_.layout().part_elements * sizeof(float)};
  }

  void step(const memory_batch& from) {
    for (const auto& one : plan_) {
      if (one.what == local_step::action::add)
        add_into(buffer(one.into), buffer(one.from));
      else
        train_shard(from, one);
    }
    rule_->apply({.parameters = store_.parameters(),
                  .slots = store_.arena().subspan(store_.layout().part_elements),
                  .gradient = buffer(0),
                  .scale = 1.0F / static_cast<float>(what_.global_batch),
                  .rate = rate,
                  .step = step_++});
  }
  [[nodiscard]] double loss() const { return loss_ / what_.global_batch / static_cast<double>(step_); }

private:
  void train_shard(const memory_batch& from, const local_step& one) {
    const std::size_t samples = what_.global_batch / what_.shards;
    const std::size_t features = from.inputs.size() / from.labels.size();
    flat_sink sink{store_.layout(), buffer(one.into)};
    const auto inputs = std::span{from.inputs}.subspan(one.shard * samples * features, samples * features);
    const auto labels = std::span{from.labels}.subspan(one.shard * samples, samples);
    loss_ += kernels_.train_shard({samples, features, inputs, labels, 0}, store_, sink).loss_sum;
  }
  std::span<float> buffer(std::size_t index) {
    const auto elements = store_.layout().part_elements;
    return sums_.as<float>().subspan(index * elements, elements);
  }

  const options& what_;
  std::unique_ptr<const optimizer> rule_;
  parameter_store store_{7};
  examples::mlp kernels_{store_};
  touched_memory sums_;
  const std::vector<local_step> plan_{local_sum_steps({0, what_.shards})};
  std::uint64_t step_{0};
  double loss_{0};
};

double cpu_ms() {
  struct rusage used {};
  ::getrusage(RUSAGE_SELF, &used);
  const auto ms = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) * 1e3 + static_cast<double>(t.tv_usec) / 1e3;
  };
  return ms(used.ru_utime) + ms(used.ru_stime);
}

int run(const options& what) {
  const auto batches = gather(what);
  if (!batches) {
    std::fprintf(stderr, "bare_step: %s\n", batches.failure().text.c_str());
    return exit_code_of(batches.failure().code);
  }
  bare_loop loop{what};
  std::vector<double> ms;
  ms.reserve(what.steps);
  const auto began = std::chrono::steady_clock::now();
  auto last = began;
  const double cpu_before = cpu_ms();
  for (std::uint64_t i = 0; i < what.steps; ++i) {
    loop.step((*batches)[i % ready_batches]);
    const auto now = std::chrono::steady_clock::now();
    ms.push_back(std::chrono::duration<double, std::milli>(now - last).count());
    last = now;
  }
  const double cpu = cpu_ms() - cpu_before;
  const double seconds = std::chrono::duration<double>(last - began).count();
  std::sort(ms.begin(), ms.end());
  const auto at = [&](std::size_t percent) { return ms[(ms.size() - 1) * percent / 100]; };
  const nlohmann::ordered_json out{
      {"samples_per_s", static_cast<double>(what.steps) * what.global_batch / seconds},
      {"step_ms", {{"p50", at(50)}, {"p99", at(99)}}},
      {"cpu_ms_per_step", cpu / static_cast<double>(what.steps)},
      {"loss", loop.loss()}};
  std::puts(out.dump().c_str());
  return 0;
}

} // namespace

int main(int argc, char** argv) {
  options what;
  CLI::App app{"The example's kernels in a plain loop; prints one JSON object"};
  app.add_option("--steps", what.steps)->check(CLI::Range(1, 1'000'000));
  app.add_option("--global-batch", what.global_batch)->check(CLI::Range(1, 65536));
  app.add_option("--shards", what.shards)->check(CLI::Range(1, 1024));
  app.add_option("--seed", what.seed);
  app.add_option("--data", what.data);
  CLI11_PARSE(app, argc, argv);
  return run(what);
}
