// Gloo's all-reduce over TCP (on loopback, or between namespaces): the fastest of its algorithms at this
// size, found by a trial of each.
#include <algorithm>
#include <array>
#include <exception>
#include <filesystem>

#include <gloo/allreduce.h>
#include <gloo/allreduce_halving_doubling.h>
#include <gloo/allreduce_ring_chunked.h>
#include <gloo/math.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>
#include <stdlib.h>

#include "bench/collective/allreduce_program.hpp"
#include "runtime/base/buffer_pool.hpp"

namespace {

using namespace troupe;
using namespace troupe::bench;

constexpr std::array<const char*, 4> algorithms{"ring", "bcube", "ring-chunked", "halving-doubling"};
constexpr std::uint32_t trial_share = 8; // of the iterations, at least
constexpr std::uint32_t trial_min = 3;
constexpr std::uint32_t trial_warm_up_ms = 20;

class gloo_operation final : public rank_operation {
public:
  gloo_operation(const allreduce_options& options, std::uint32_t rank, const std::string& folder,
                 const std::string& algorithm)
      : memory_{options.bytes}
      , data_{memory_.as<float>().first(options.elements())}
      , ranks_{options.ranks} {
    gloo::transport::tcp::attr where;
    where.hostname = rank < options.places.size() ? options.places[rank].address : "127.0.0.1";
    auto device = gloo::transport::tcp::CreateDevice(where);
    gloo::rendezvous::FileStore store{folder};
    context_ = std::make_shared<gloo::rendezvous::Context>(static_cast<int>(rank), static_cast<int>(ranks_));
    context_->connectFullMesh(store, device);
    const auto count = static_cast<int>(data_.size());
    if (algorithm == "ring-chunked")
      object_ =
          std::make_unique<gloo::AllreduceRingChunked<float>>(context_, std::vector{data_.data()}, count);
    else if (algorithm == "halving-doubling")
      object_ =
          std::make_unique<gloo::AllreduceHalvingDoubling<float>>(context_, std::vector{data_.data()}, count);
    else
      chosen_ = algorithm == "ring" ? gloo::AllreduceOptions::Algorithm::RING
                                    : gloo::AllreduceOptions::Algorithm::BCUBE;
  }
  std::vector<std::span<float>> inputs() override { return {data_}; }
  expected<std::span<const float>> run() override {
    if (object_)
      object_->run();
    else
      call();
    return std::span<const float>{data_};
  }
  std::uint32_t summands() const override { return ranks_; }

private:
  void call() {
    gloo::AllreduceOptions options{context_};
    options.setAlgorithm(chosen_);
    options.setOutput(data_.data(), data_.size());
    const auto add = static_cast<void (*)(void*, const void*, const void*, std::size_t)>(&gloo::sum<float>);
    options.setReduceFunction(add);
    gloo::allreduce(options);
  }

  touched_memory memory_;
  std::span<float> data_;
  std::uint32_t ranks_;
  std::shared_ptr<gloo::rendezvous::Context> context_;
  std::unique_ptr<gloo::Algorithm> object_;
  gloo::AllreduceOptions::Algorithm chosen_{gloo::AllreduceOptions::Algorithm::RING};
};

// Third-party exceptions end here.
class guarded final : public rank_operation {
public:
  explicit guarded(std::unique_ptr<rank_operation> inner)
      : inner_{std::move(inner)} {}
  std::vector<std::span<float>> inputs() override { return inner_->inputs(); }
  expected<std::span<const float>> run() override {
    try {
      return inner_->run();
    } catch (const std::exception& failed) {
      return error{errc::internal, failed.what()};
    }
  }
  std::uint32_t summands() const override { return inner_->summands(); }

private:
  std::unique_ptr<rank_operation> inner_;
};

expected<allreduce_result> measure(const allreduce_options& options, const std::string& algorithm) {
  namespace fs = std::filesystem;
  auto folder = (fs::temp_directory_path() / "troupe-gloo-XXXXXX").string();
  if (::mkdtemp(folder.data()) == nullptr) return error{errc::storage_failed, "no temporary folder"};
  auto result = measure_forked(options, [&](std::uint32_t rank) -> expected<std::unique_ptr<rank_operation>> {
    try {
      auto made = std::make_unique<gloo_operation>(options, rank, folder, algorithm);
      return std::unique_ptr<rank_operation>{new guarded{std::move(made)}};
    } catch (const std::exception& failed) {
      return error{errc::internal, failed.what()};
    }
  });
  std::error_code ignored;
  fs::remove_all(folder, ignored);
  if (result) result->algorithm = algorithm;
  return result;
}

expected<allreduce_result> measure_best(const allreduce_options& options) {
  auto trial = options;
  trial.warm_up_ms = std::min(options.warm_up_ms, trial_warm_up_ms);
  trial.iterations = std::max(options.iterations / trial_share, trial_min);
  std::string best;
  double best_us = 0;
  for (const std::string algorithm : algorithms) {
    const auto tried = measure(trial, algorithm);
    if (!tried) return error{tried.failure().code, algorithm + ": " + tried.failure().text};
    if (best.empty() || tried->p50_us < best_us) {
      best = algorithm;
      best_us = tried->p50_us;
    }
  }
  return measure(options, best);
}

} // namespace

int main(int argc, char** argv) {
  const auto line = parse_allreduce_options(argc, argv, "Gloo's all-reduce over TCP");
  if (line.exit_code) return *line.exit_code;
  auto options = line.options;
  options.pinned = false; // each rank has a thread of Gloo's beside its own
  const auto measured = measure_best(options);
  return measured ? tell(line.options, *measured) : tell_failure("allreduce_gloo", measured.failure());
}
