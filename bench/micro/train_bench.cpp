// Training benchmark: the step engine on Fashion-MNIST, ranks as threads of one process, beside a bare loop.
//
//   train_bench [--ranks N] [--steps N] [--global-batch N] [--shards N] [--peak RATE] [--warmup N] [--adamw]
//               [--normalise] [--data DIR]
//
// Prints steps, samples a second, where the time of a step goes, the test accuracy and the digest; then the
// throughput of the same kernels in a plain loop without engine, collective and reader.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <future>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <CLI/CLI.hpp>

#include "examples/fashion_mnist/mlp.hpp"
#include "runtime/data/idx_dataset.hpp"
#include "runtime/data/prefetch_pump.hpp"
#include "runtime/host/posix_storage.hpp"
#include "runtime/host/thread_executor.hpp"
#include "runtime/policy/canonical_sum.hpp"
#include "runtime/train/evaluation.hpp"
#include "runtime/train/step_engine.hpp"
#include "transports/shm/shm_collective.hpp"

namespace {

using namespace troupe;

struct options {
  std::uint32_t ranks{1};
  std::uint64_t steps{1407};
  std::uint32_t global_batch{128};
  std::uint32_t shards{8};
  float peak{0.1F};
  std::uint64_t warmup{100};
  bool adam{false};
  bool normalise{false};
  std::string data{"/usr/share/datasets/fashion-mnist"};
};

class steady_clock_seam final : public clock_seam {
public:
  time_point now() const override {
    return time_from_ns(std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds{1});
  }
  timer_id call_after(duration, task) override { return 0; }
  void cancel(timer_id) override {}
};

class step_log final : public step_observer {
public:
  explicit step_log(std::uint64_t steps) { seen.reserve(steps); }
  void on_step(const observation& what) override { seen.push_back(what); }
  void on_ended(step_id, run_end) noexcept override { done.set_value(); }
  void on_failed(step_id, const error& cause) noexcept override {
    std::fprintf(stderr, "failed: %s\n", cause.text.c_str());
    done.set_value();
  }
  std::vector<observation> seen;
  std::promise<void> done;
};

struct rank_threads {
  rank_threads(const options& what, std::shared_ptr<const dataset> data)
      : rule{std::move(make_optimizer(what.adam ? optimizer_settings{adamw{}} : sgd{}).value())}
      , log{what.steps}
      , stream{std::make_shared<batch_stream>(4, data->features())}
      , pump{reader, data, stream, {}} {
    store.freeze(rule->slot_names());
    const cosine rate{.peak = what.peak, .warmup_steps = what.warmup, .total_steps = what.steps};
    engine = std::make_unique<step_engine>(
        step_context{kernels, store, *rule, device, clock, box, log},
        step_settings{.shards = what.shards, .global_batch = what.global_batch, .rate = rate});
  }
  void begin(const options& what, std::uint32_t rank, std::unique_ptr<communicator> with) {
    reduce = std::move(with);
    const auto range = shard_range(what.shards, what.ranks, rank);
    const auto started = pump.start({.generation = generation_id{1},
                                     .first_step = step_id{0},
                                     .last_step = step_id{what.steps},
                                     .first_shard = range.first,
                                     .shard_count = range.count,
                                     .shards = what.shards,
                                     .global_batch = what.global_batch,
                                     .seed = 7});
    if (!started) std::fprintf(stderr, "pump: %s\n", started.failure().text.c_str());
    device.post([this, ranks = what.ranks, steps = what.steps, rank] {
      engine->begin({.generation = generation_id{1},
                     .reduce = reduce.get(),
                     .batches = stream.get(),
                     .rank = rank,
                     .world = ranks,
                     .first_step = step_id{0},
                     .last_step = step_id{steps}});
    });
  }

  std::unique_ptr<const optimizer> rule;
  parameter_store store{7};
  examples::mlp kernels{store};
  steady_clock_seam clock;
  black_box box;
  step_log log;
  std::shared_ptr<batch_stream> stream;
  std::unique_ptr<communicator> reduce;
  std::unique_ptr<step_engine> engine;
  thread_executor reader{"reader"};
  prefetch_pump pump;
  thread_executor device{"device"};
};

std::shared_ptr<const dataset> load(const options& what, const std::string& part) {
  posix_storage files;
  memory_staging memory;
  auto loaded = stage_idx(files, memory,
                          {.name = part,
                           .images = what.data + "/" + part + "-images-idx3-ubyte.gz",
                           .labels = what.data + "/" + part + "-labels-idx1-ubyte.gz",
                           .classes = 10,
                           .scaling = what.normalise ? pixel_scaling{0.286F, 0.353F} : pixel_scaling{}});
  if (!loaded) throw std::runtime_error{loaded.failure().text};
  return loaded.value();
}

// Median, and the fifth percentile: what a step takes when nobody else has the processor.
struct spread {
  double low{0};
  double median{0};
};

spread spread_of(std::vector<double> values) {
  std::ranges::sort(values);
  return {values[values.size() / 20], values[values.size() / 2]};
}

template <class Field>
spread spread_us(const std::vector<observation>& seen, Field field) {
  std::vector<double> values;
  for (const auto& one : seen)
    values.push_back(to_ms(field(one)) * 1e3);
  return spread_of(std::move(values));
}

void train(const options& what) {
  const auto data = load(what, "train");
  std::vector<std::unique_ptr<rank_threads>> ranks;
  for (std::uint32_t rank = 0; rank < what.ranks; ++rank)
    ranks.push_back(std::make_unique<rank_threads>(what, data));
  shm_collective meeting;
  const collective_shape shape{generation_id{1}, what.ranks, what.shards,
                               ranks[0]->engine->contribution_size()};
  const auto descriptor = meeting.prepare(shape).value();
  std::vector<std::unique_ptr<communicator>> communicators;
  for (std::uint32_t rank = 0; rank < what.ranks; ++rank)
    communicators.push_back(std::move(meeting.connect(descriptor, shape, rank_id{rank}).value()));

  const auto began = std::chrono::steady_clock::now();
  for (std::uint32_t rank = 0; rank < what.ranks; ++rank)
    ranks[rank]->begin(what, rank, std::move(communicators[rank]));
  for (const auto& one : ranks)
    one->log.done.get_future().wait();
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  for (const auto& one : ranks)
    one->device.finish();

  auto& first = *ranks[0];
  const auto test = load(what, "t10k");
  const auto result = dataset_evaluation{*test}.run(first.kernels, first.store).value();
  const auto& seen = first.log.seen;
  std::printf("ranks %u  steps %llu  global batch %u  shards %u: %.2f s, %.0f samples/s, accuracy %.4f\n",
              what.ranks, static_cast<unsigned long long>(what.steps), what.global_batch, what.shards,
              seconds, static_cast<double>(what.steps) * what.global_batch / seconds, accuracy(result));
  std::printf("loss %.4f -> %.4f, state %s\n", seen.front().loss, seen.back().loss,
              first.engine->state_digest().c_str());
  std::printf("us a step: %-10s %10s %10s\n", "", "5 %", "median");
  const auto row = [&seen](const char* name, auto field) {
    const auto times = spread_us(seen, field);
    std::printf("           %-10s %10.0f %10.0f\n", name, times.low, times.median);
  };
  row("total", [](auto& o) { return o.total; });
  row("data", [](auto& o) { return o.data_wait; });
  row("compute", [](auto& o) { return o.compute; });
  row("all-reduce", [](auto& o) { return o.comm_wait; });
  row("update", [](auto& o) { return o.update; });
}

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

// The kernels alone: batches that lie ready, the same additions, the same update. As many batches as the
// stream has buffers, so that inputs come from the same distance.
void bare_loop(const options& what) {
  const auto rule = std::move(make_optimizer(what.adam ? optimizer_settings{adamw{}} : sgd{}).value());
  parameter_store store{7};
  examples::mlp kernels{store};
  store.freeze(rule->slot_names());
  const auto& layout = store.layout();
  const touched_memory memory{local_buffers(what.shards) * layout.part_elements * sizeof(float)};
  constexpr std::size_t batches = 4;
  const std::size_t batch_inputs = std::size_t{what.global_batch} * 784;
  const std::vector<float> inputs(batches * batch_inputs, 0.5F);
  const std::vector<std::uint8_t> labels(what.global_batch);
  const auto steps = local_sum_steps({0, what.shards});
  const std::size_t samples = what.global_batch / what.shards;
  const auto buffer = [&](std::uint32_t index) {
    return memory.as<float>().subspan(index * layout.part_elements, layout.part_elements);
  };
  std::vector<double> times(std::min<std::uint64_t>(what.steps, 500));
  std::size_t turn = 0;
  for (auto& time : times) {
    const auto batch_of_inputs = std::span{inputs}.subspan(turn++ % batches * batch_inputs, batch_inputs);
    const auto began = std::chrono::steady_clock::now();
    for (const auto& step : steps)
      if (step.what == local_step::action::add) {
        add_into(buffer(step.into), buffer(step.from));
      } else {
        flat_sink sink{layout, buffer(step.into)};
        (void)kernels.train_shard({samples, 784,
                                   batch_of_inputs.subspan(step.shard * samples * 784, samples * 784),
                                   std::span{labels}.subspan(step.shard * samples, samples), 0},
                                  store, sink);
      }
    rule->apply(
        {store.parameters(), store.arena().subspan(layout.part_elements), buffer(0), 1e-6F, 0.01F, 0});
    time = std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - began).count();
  }
  const auto spread = spread_of(times);
  std::printf("           %-10s %10.0f %10.0f\n", "bare loop", spread.low, spread.median);
}

} // namespace

int main(int argc, char** argv) {
  options what;
  CLI::App app{"Step engine on Fashion-MNIST"};
  app.add_option("--ranks", what.ranks);
  app.add_option("--steps", what.steps);
  app.add_option("--global-batch", what.global_batch);
  app.add_option("--shards", what.shards);
  app.add_option("--peak", what.peak);
  app.add_option("--warmup", what.warmup);
  app.add_flag("--adamw", what.adam);
  app.add_flag("--normalise", what.normalise);
  app.add_option("--data", what.data);
  CLI11_PARSE(app, argc, argv);
  try {
    train(what);
    bare_loop(what);
  } catch (const std::exception& problem) {
    std::fprintf(stderr, "train_bench: %s\n", problem.what());
    return 5;
  }
  return 0;
}
