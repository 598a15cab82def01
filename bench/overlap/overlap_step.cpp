// Overlap step: backward and the sum of its gradients over shared memory, in forked ranks; one row of
// `troupe bench overlap`.
//
// The shard pass, its buckets, the communicator and its lane are a worker's. Backward is not a model's:
//   stand-in   a device of its own computes: the rank's thread only waits until each layer is due
//   cpu        the rank's thread computes as much per layer: arithmetic on a few KiB, the memory left alone
//   none       the gradients are there at once
// Gradients keep their values: what is measured does not depend on them. Prints one JSON object.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <memory>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/support/quantiles.hpp"
#include "runtime/data/batch_stream.hpp"
#include "runtime/host/thread_executor.hpp"
#include "runtime/train/shard_pass.hpp"
#include "transports/shm/shm_collective.hpp"

namespace {

using namespace troupe;
using clock_type = std::chrono::steady_clock;

struct options {
  std::uint32_t ranks{2};
  std::uint32_t shards_a_rank{1};
  std::size_t bytes{std::size_t{128} << 20U};
  std::size_t bucket{0};
  std::uint32_t layers{16};
  std::uint32_t iterations{20};
  double layer_us{0}; // of backward, in one shard
  std::string backward{"none"};
  bool summed{true}; // else: backward alone
};

constexpr std::uint32_t warm_up = 3;
constexpr std::size_t spun_elements = 1024;

double us_between(clock_type::time_point from, clock_type::time_point to) {
  return std::chrono::duration<double, std::micro>(to - from).count();
}

// One step of a rank, in microseconds.
struct step_times {
  double step{0}, backward{0}, wait{0};
};

class layers_model final : public model {
public:
  layers_model(model_context& context, const options& what)
      : what_{what}
      , values_(spun_elements, 1.0F) {
    for (std::uint32_t i = 0; i < what.layers; ++i)
      layers_.push_back(context.declare("layer" + std::to_string(i),
                                        {what.bytes / sizeof(float) / what.layers}, model_context::zeros()));
    if (what.backward == "cpu") calibrate();
  }
  shard_result train_shard(const batch_view&, const parameter_view&, gradient_sink& sink) override {
    auto due = clock_type::now();
    for (auto i = layers_.size(); i-- > 0;) {
      if (what_.backward == "cpu") compute(turns_a_layer_);
      if (what_.backward == "stand-in") wait_until(due += std::chrono::nanoseconds{layer_ns()});
      sink.ready(layers_[i]);
    }
    return {};
  }
  evaluation evaluate(const batch_view&, const parameter_view&) override { return {}; }
  [[nodiscard]] float value() const { return values_[0]; } // computed: it may not be left out

private:
  [[nodiscard]] std::int64_t layer_ns() const { return static_cast<std::int64_t>(what_.layer_us * 1000); }
  static void wait_until(clock_type::time_point due) {
    const auto ns = std::chrono::nanoseconds{due.time_since_epoch()}.count();
    const timespec at{ns / 1'000'000'000, ns % 1'000'000'000};
    while (::clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, nullptr) == EINTR) {
    }
  }
  void compute(std::uint64_t turns) {
    for (std::uint64_t turn = 0; turn < turns; ++turn)
      for (auto& value : values_)
        value = value * 0.999F + 0.001F;
  }
  // The fastest of several looks: other programs may run.
  void calibrate() {
    constexpr std::uint64_t tried = 2000;
    double fastest_us = 1e9;
    for (int i = 0; i < 10; ++i) {
      const auto began = clock_type::now();
      compute(tried);
      fastest_us = std::min(fastest_us, us_between(began, clock_type::now()));
    }
    turns_a_layer_ = static_cast<std::uint64_t>(what_.layer_us / fastest_us * double{tried});
  }

  const options& what_;
  std::vector<parameter> layers_;
  std::vector<float> values_;
  std::uint64_t turns_a_layer_{0};
};

// One batch, whose contents nobody looks at.
batch empty_batch(batch_stream& from, shard_interval range) {
  batch made{.first_shard = range.first, .shard_count = range.count, .samples_per_shard = 1, .features = 1};
  from.reserve(range.count);
  made.memory = from.try_lend();
  return made;
}

bool run_rank(const options& what, const std::string& descriptor, std::uint32_t rank,
              std::span<step_times> times) {
  const auto shards = what.ranks * what.shards_a_rank;
  parameter_store store{7};
  layers_model kernels{store, what};
  store.freeze({});
  shard_pass pass{store, shards, what.bucket};
  thread_executor lane{"lane"};
  const collective_shape shape{generation_id{1}, what.ranks, shards, pass.elements()};
  auto member = shm_collective{{.lane = &lane}}.connect(descriptor, shape, rank_id{rank});
  if (!member) return false;
  pass.plan(rank, what.ranks, **member);
  batch_stream stream{1, 1};
  const auto given = empty_batch(stream, pass.range());
  bool good = true;
  for (std::uint32_t i = 0; i < warm_up + what.iterations; ++i) {
    const auto began = clock_type::now();
    pass.compute(kernels, given, i, **member);
    const auto computed = clock_type::now();
    if (what.summed || i < warm_up)
      (*member)->all_reduce([&](const expected<reduction>& sum) { good = good && sum.has_value(); });
    const auto summed = clock_type::now();
    if (i >= warm_up)
      times[i - warm_up] = {us_between(began, summed), us_between(began, computed),
                            us_between(computed, summed)};
  }
  return good && kernels.value() > 0;
}

int run(const options& what) {
  const auto shards = what.ranks * what.shards_a_rank;
  const auto layer = (what.bytes / sizeof(float) / what.layers + 15) / 16 * 16;
  shm_collective director;
  const auto descriptor =
      director.prepare({generation_id{1}, what.ranks, shards, contribution_elements(layer * what.layers)});
  const auto bytes = what.ranks * what.iterations * sizeof(step_times);
  auto* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (!descriptor || memory == MAP_FAILED) return std::fputs("overlap_step: no memory\n", stderr), 1;
  const std::span all{static_cast<step_times*>(memory), what.ranks * what.iterations};
  std::vector<pid_t> children;
  for (std::uint32_t rank = 0; rank < what.ranks; ++rank) {
    const auto pid = ::fork();
    if (pid == 0) {
      const bool good =
          run_rank(what, *descriptor, rank, all.subspan(rank * what.iterations, what.iterations));
      if (!good) director.end_generation();
      ::_exit(good ? 0 : 1);
    }
    children.push_back(pid);
  }
  bool good = true;
  for (const auto pid : children) {
    int status = 0;
    good = ::waitpid(pid, &status, 0) == pid && status == 0 && good;
  }
  if (!good) return std::fputs("overlap_step: a rank failed\n", stderr), 1;
  std::vector<double> step(what.iterations), backward(what.iterations), wait(what.iterations);
  for (std::uint32_t i = 0; i < what.iterations; ++i) // of the slowest rank
    for (std::uint32_t rank = 0; rank < what.ranks; ++rank) {
      const auto& one = all[rank * what.iterations + i];
      if (one.step > step[i]) step[i] = one.step, backward[i] = one.backward, wait[i] = one.wait;
    }
  const auto ms = [](const std::vector<double>& values, double at) {
    return bench::quantile(values, at) / 1000;
  };
  const nlohmann::ordered_json out{{"step_ms", {{"p50", ms(step, 0.5)}, {"p99", ms(step, 0.99)}}},
                                   {"backward_ms", ms(backward, 0.5)},
                                   {"wait_ms", ms(wait, 0.5)}};
  std::puts(out.dump().c_str());
  return 0;
}

} // namespace

int main(int argc, char** argv) {
  options what;
  bool alone = false;
  CLI::App app{"Backward, and the sum of its gradients during it; prints one JSON object"};
  app.add_option("--ranks", what.ranks)->check(CLI::Range(2, 64));
  app.add_option("--shards-a-rank", what.shards_a_rank)->check(CLI::Range(1, 64));
  app.add_option("--bytes", what.bytes)->check(CLI::Range(std::size_t{1} << 16U, std::size_t{1} << 32U));
  app.add_option("--bucket", what.bucket)->check(CLI::Range(std::size_t{0}, std::size_t{1} << 30U));
  app.add_option("--layers", what.layers)->check(CLI::Range(1, 1024));
  app.add_option("--iterations", what.iterations)->check(CLI::Range(1, 100'000));
  app.add_option("--layer-us", what.layer_us)->check(CLI::Range(0.0, 1e6));
  app.add_option("--backward", what.backward)->check(CLI::IsMember({"none", "stand-in", "cpu"}));
  app.add_flag("--alone", alone, "backward without the sum");
  CLI11_PARSE(app, argc, argv);
  what.summed = !alone;
  return run(what);
}
