#include "actors/graph/training_graph.hpp"

#include "runtime/data/staged_dataset.hpp"

namespace troupe {

dataset_source idx_source(idx_files what) {
  dataset_source source;
  source.stage = [what](storage& files, staging& into) -> expected<staged_source> {
    auto staged = stage_idx(files, into, what);
    if (!staged) return staged.failure();
    return staged_source{*staged, (*staged)->memory().locator()};
  };
  source.open = [](staging& from, const std::string& locator) -> expected<std::shared_ptr<const dataset>> {
    auto opened = open_staged(from, locator);
    if (!opened) return opened.failure();
    return std::shared_ptr<const dataset>{*opened};
  };
  return source;
}

dataset_source synthetic_source(synthetic_shape what) {
  dataset_source source;
  source.stage = [what](storage&, staging&) -> expected<staged_source> {
    return staged_source{std::make_shared<synthetic_dataset>(what), {}};
  };
  source.open = [what](staging&, const std::string&) -> expected<std::shared_ptr<const dataset>> {
    return std::shared_ptr<const dataset>{std::make_shared<synthetic_dataset>(what)};
  };
  return source;
}

training_graph& training_graph::defaults(job_settings settings) {
  defaults_ = std::move(settings);
  return *this;
}
training_graph& training_graph::option(graph_option what) {
  options_.push_back(std::move(what));
  return *this;
}
training_graph& training_graph::dataset(source_factory train) {
  train_source_ = std::move(train);
  return *this;
}
training_graph& training_graph::test(source_factory data) {
  test_source_ = std::move(data);
  return *this;
}
training_graph& training_graph::prefetch(prefetch_settings settings) {
  prefetching_ = settings;
  return *this;
}
training_graph& training_graph::train(model_factory factory) {
  factory_ = std::move(factory);
  return *this;
}
training_graph& training_graph::optimize(optimizer_settings rule, learning_rate rate, float clip_norm) {
  rule_ = rule;
  rate_ = rate;
  clip_norm_ = clip_norm;
  return *this;
}
training_graph& training_graph::supervise(intensity_policy per_worker) {
  intensity_ = per_worker;
  return *this;
}
training_graph& training_graph::actor(std::string name, placement where, user_actor_factory make) {
  actors_.push_back({std::move(name), where, std::move(make)});
  return *this;
}

expected<void> training_graph::validate() const {
  const auto missing = [this](const char* what) {
    return error{errc::bad_argument, "graph '" + identity_.name + "': " + what};
  };
  if (identity_.name.empty()) return missing("has no name");
  if (!train_source_) return missing("has no dataset: call dataset(...)");
  if (!factory_) return missing("has no model: call train<Model>()");
  if (prefetching_.ready_batches == 0) return missing("prefetch({.ready_batches = 0}): at least 1");
  return troupe::validate(rate_);
}

} // namespace troupe
