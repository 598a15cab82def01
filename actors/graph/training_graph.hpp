// Training graph: what a user's program declares: data, model, optimizer, and how it is supervised.
//
// Flow:     dataset -> prefetcher -> worker -> all-reduce -> optimizer -> checkpointer -> director
// Owns:     descriptions only; nothing runs before `troupe::run` (cli/run) or a simulation composes it.
//
//   int main(int argc, char** argv) {
//     troupe::training_graph graph{{.name = "fashion_mnist"}};
//     graph.dataset(train_images).test(test_images)
//         .train<mlp>()
//         .optimize(troupe::sgd{.momentum = 0.9F}, troupe::cosine{.peak = 0.1F, .warmup_steps = 100});
//     return troupe::run(graph, argc, argv);
//   }
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "actors/graph/user_actor.hpp"
#include "actors/worker/trainer.hpp"
#include "runtime/data/dataset.hpp"
#include "runtime/data/idx_dataset.hpp"
#include "runtime/data/staging.hpp"
#include "runtime/data/synthetic_dataset.hpp"
#include "runtime/policy/job_settings.hpp"
#include "runtime/policy/restart_intensity.hpp"
#include "runtime/seams/storage.hpp"

namespace troupe {

// A dataset as the director holds it, and how a worker of the same host finds it.
struct staged_source {
  std::shared_ptr<const dataset> data;
  std::string locator; // empty: `open` makes its own
};

struct dataset_source {
  // In the director, once a host, before anything starts; may block. errc::bad_data ends the program (5).
  std::function<expected<staged_source>(storage&, staging&)> stage;
  // In a worker: milliseconds, no decoding.
  std::function<expected<std::shared_ptr<const dataset>>(staging&, const std::string& locator)> open;
};

// Two IDX files (plain or gzip), decoded once a host and shared.
[[nodiscard]] dataset_source idx_source(idx_files what);
// Deterministic samples from a seed; for examples, tests and simulation.
[[nodiscard]] dataset_source synthetic_source(synthetic_shape what);

using source_factory = std::function<dataset_source(const job_settings&)>;

struct graph_identity {
  std::string name; // of the program; checkpoints of another name are refused
  std::string version{"0.1.0"};
  std::string summary{"Trains a model that survives the death of its workers."}; // for --help
};

struct prefetch_settings {
  std::uint32_t ready_batches{4}; // read ahead, per worker
};

// An option of the program's own; the value ends in job_settings::extra in every process.
struct graph_option {
  std::string name, value_name, help, fallback;
};

class training_graph {
public:
  explicit training_graph(graph_identity identity)
      : identity_{std::move(identity)} {}

  // Defaults of the command line's options for this program.
  training_graph& defaults(job_settings settings);
  training_graph& option(graph_option what);
  training_graph& dataset(source_factory train);
  training_graph& test(source_factory data); // evaluated once, at the end, by rank 0
  training_graph& prefetch(prefetch_settings settings);
  template <class Model>
  training_graph& train() {
    return train(
        [](model_context& context) -> std::unique_ptr<model> { return std::make_unique<Model>(context); });
  }
  training_graph& train(model_factory factory);
  // `clip_norm`: the mean gradient is scaled down to this norm; 0: off.
  training_graph& optimize(optimizer_settings rule, learning_rate rate, float clip_norm = 0);
  training_graph& supervise(intensity_policy per_worker);
  // A further actor of the program's own, supervised in the process that `where` names.
  training_graph& actor(std::string name, placement where, user_actor_factory make);

  // errc::bad_argument says what is missing.
  [[nodiscard]] expected<void> validate() const;

  [[nodiscard]] const graph_identity& identity() const { return identity_; }
  [[nodiscard]] const job_settings& default_settings() const { return defaults_; }
  [[nodiscard]] const std::vector<graph_option>& options() const { return options_; }
  [[nodiscard]] const source_factory& train_source() const { return train_source_; }
  [[nodiscard]] const source_factory& test_source() const { return test_source_; }
  [[nodiscard]] const prefetch_settings& prefetching() const { return prefetching_; }
  [[nodiscard]] const model_factory& factory() const { return factory_; }
  [[nodiscard]] const optimizer_settings& rule() const { return rule_; }
  [[nodiscard]] const learning_rate& rate() const { return rate_; }
  [[nodiscard]] float clip_norm() const { return clip_norm_; }
  [[nodiscard]] const intensity_policy& intensity() const { return intensity_; }
  [[nodiscard]] const std::vector<user_actor>& actors() const { return actors_; }

private:
  graph_identity identity_;
  job_settings defaults_;
  std::vector<graph_option> options_;
  source_factory train_source_, test_source_;
  prefetch_settings prefetching_;
  model_factory factory_;
  optimizer_settings rule_;
  learning_rate rate_;
  float clip_norm_{0};
  intensity_policy intensity_{.restarts_max = 10, .period = std::chrono::seconds{60}};
  std::vector<user_actor> actors_;
};

} // namespace troupe
