#include "cli/sim/history.hpp"

#include <algorithm>
#include <cmath>
#include <set>

#include "runtime/base/counter_rng.hpp"
#include "runtime/data/sample_order.hpp"

namespace troupe::sim {
namespace {

constexpr std::uint64_t unknown_sample = ~std::uint64_t{0};

std::uint64_t hash_of(std::span<const float> inputs) {
  const auto bytes = std::as_bytes(inputs);
  return stream_of({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

// What a refusal at `step` leaves: that step, or with Top-K the newest whole state (SE-11).
std::uint64_t newest_whole(const job_settings& settings, std::uint64_t step) {
  return settings.top_k == 0 ? step : step - step % settings.checkpoint_every;
}

} // namespace

sample_contents contents_of(const dataset& data) {
  sample_contents contents;
  std::vector<float> inputs(data.features());
  for (std::uint64_t i = 0; i < data.samples(); ++i)
    contents.push_back(data.read_into(i, inputs) ? hash_of(inputs) : unknown_sample);
  return contents;
}

history::history(const workload& what, std::shared_ptr<const sample_contents> samples)
    : what_{what}
    , samples_{std::move(samples)} {}

// Shards are trained in order: one that was there already begins the step again.
void history::on_shard(std::int64_t pid, const batch_view& shard) {
  auto& trained = trained_[pid];
  if (!trained.empty() && shard.first_sample <= trained.back().first_sample) trained.clear();
  shard_record record{shard.first_sample, {}};
  for (std::size_t i = 0; i < shard.samples; ++i)
    record.contents.push_back(hash_of(shard.inputs.subspan(i * shard.features, shard.features)));
  trained.push_back(std::move(record));
}

void history::on_arrival(std::int64_t pid) {
  jobs_.try_emplace(pid, job_);
  arrived_[pid] = std::exchange(trained_[pid], {});
}

// Whoever was cut off when its job ended may still come by a sum of it, before it notices.
void history::on_sum(std::uint64_t sum, const collective_shape& shape, std::span<const std::int64_t> pids,
                     std::span<const float> values) {
  sum_record record{jobs_.at(pids.front()), shape.generation, shape.world, {}, {}};
  record.finite = std::ranges::all_of(values, [](float value) { return std::isfinite(value); });
  for (const auto pid : pids) {
    for (auto& shard : arrived_[pid])
      record.shards.push_back(std::move(shard));
    arrived_.erase(pid);
  }
  sums_.emplace(sum, std::move(record));
}

void history::on_taken(std::uint64_t sum, std::int64_t pid) {
  auto& record = sums_.at(sum);
  const auto box = boxes_.find(pid);
  const auto applied = box == boxes_.end() ? 0 : box->second->step_applied.load();
  const auto batch = batch_of(record);
  if (!record.finite && applied == newest_whole(what_.settings, batch / what_.settings.accumulate))
    return; // refused
  if (record.finite && applied == (batch + 1) / what_.settings.accumulate)
    record.applied_by.push_back(pid);
  else
    findings_.push_back("process " + std::to_string(pid) + " took the " + (record.finite ? "" : "NaN ") +
                        "sum of batch " + std::to_string(batch + 1) + " and is at step " +
                        std::to_string(applied));
}

std::uint64_t history::batch_of(const sum_record& sum) const {
  return sum.shards.empty() ? 0 : sum.shards.front().first_sample / what_.settings.global_batch;
}

void history::check_samples(const sum_record& sum, std::vector<std::string>& findings) const {
  const auto batch = batch_of(sum);
  const auto label =
      "batch " + std::to_string(batch + 1) + " of generation " + to_string(sum.generation) + ": ";
  sample_order order{samples_->size(), what_.settings.seed};
  std::set<std::uint64_t> numbers;
  for (const auto& shard : sum.shards) {
    for (std::size_t i = 0; i < shard.contents.size(); ++i) {
      const auto number = shard.first_sample + i;
      if (number / what_.settings.global_batch != batch)
        findings.push_back(label + "sample " + std::to_string(number) + " is of another batch");
      if (!numbers.insert(number).second)
        findings.push_back(label + "sample " + std::to_string(number) + " counts twice");
      if (shard.contents[i] != samples_->at(order.index_of(number)))
        findings.push_back(label + "sample " + std::to_string(number) + " is not the one in the order");
    }
  }
  if (numbers.size() != what_.settings.global_batch)
    findings.push_back(label + std::to_string(numbers.size()) + " samples instead of " +
                       std::to_string(what_.settings.global_batch));
}

std::vector<std::string> history::check() const {
  auto findings = findings_;
  std::map<std::uint64_t, std::uint64_t> last;           // batch -> the sum that counts
  using place = std::pair<std::uint64_t, generation_id>; // job, generation
  std::pair<place, std::uint64_t> before{};
  for (const auto& [number, sum] : sums_) {
    if (sum.applied_by.empty()) continue;
    check_samples(sum, findings);
    const std::pair now{place{sum.job, sum.generation}, batch_of(sum)};
    // In one generation batches follow one another; the first of a generation may go back (a rollback).
    if (last.empty() ? now.second != 0 : now.first == before.first && now.second != before.second + 1)
      findings.push_back("batch " + std::to_string(now.second + 1) + " follows batch " +
                         std::to_string(before.second + 1) + " in generation " + to_string(sum.generation));
    if (now.first < before.first)
      findings.push_back("generation " + to_string(sum.generation) + " applies a batch after generation " +
                         to_string(before.first.second));
    last[now.second] = number;
    before = now;
  }
  for (std::uint64_t batch = 0; batch < what_.batches(); ++batch) {
    if (!last.contains(batch)) findings.push_back("batch " + std::to_string(batch + 1) + " never counted");
  }
  if (!last.empty() && last.rbegin()->first >= what_.batches())
    findings.emplace_back("batches beyond the last");
  return findings;
}

std::uint64_t history::recomputed() const {
  std::uint64_t applied = 0;
  std::set<std::uint64_t> batches;
  for (const auto& [number, sum] : sums_) {
    if (sum.applied_by.empty()) continue;
    ++applied;
    batches.insert(batch_of(sum));
  }
  return applied - batches.size();
}

} // namespace troupe::sim
