#include "runtime/train/evaluation.hpp"

#include <algorithm>
#include <exception>

#include "runtime/base/invariant.hpp"
#include "runtime/data/batch.hpp"

namespace troupe {

double mean_loss(const evaluation& result) {
  return result.samples == 0 ? 0.0 : result.loss_sum / static_cast<double>(result.samples);
}

double accuracy(const evaluation& result) {
  return result.samples == 0 ? 0.0
                             : static_cast<double>(result.correct) / static_cast<double>(result.samples);
}

dataset_evaluation::dataset_evaluation(const dataset& from, std::size_t batch_samples)
    : from_{from}
    , batch_samples_{std::min<std::size_t>(batch_samples, from.samples())}
    , memory_{batch::bytes_for(batch_samples_, from.features())} {
  invariant(batch_samples_ > 0, "DE-1: a batch holds at least one sample");
}

void dataset_evaluation::restart() {
  next_ = 0;
  sum_ = {};
}

expected<void> dataset_evaluation::advance(model& kernels, const parameter_view& parameters) {
  const auto count =
      static_cast<std::size_t>(std::min<std::uint64_t>(batch_samples_, from_.samples() - next_));
  const std::size_t features = from_.features();
  const auto inputs = memory_.as<float>().first(count * features);
  const auto labels =
      memory_.as<std::uint8_t>().subspan(batch::label_offset(batch_samples_, features), count);
  if (auto read = read_range(from_, next_, count, inputs, labels); !read) return read.failure();
  try {
    const auto part = kernels.evaluate({count, features, inputs, labels, next_}, parameters);
    sum_.loss_sum += part.loss_sum;
    sum_.correct += part.correct;
    sum_.samples += part.samples;
  } catch (const std::exception& thrown) {
    return error{errc::actor_failed, thrown.what()};
  }
  next_ += count;
  return {};
}

expected<evaluation> dataset_evaluation::run(model& kernels, const parameter_view& parameters) {
  restart();
  while (!finished())
    if (auto done = advance(kernels, parameters); !done) return done.failure();
  return sum_;
}

} // namespace troupe
