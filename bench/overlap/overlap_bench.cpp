#include "bench/overlap/overlap_bench.hpp"

#include <algorithm>
#include <cstdio>
#include <vector>

#include "bench/support/job_runner.hpp"
#include "bench/support/quantiles.hpp"

namespace troupe::bench {
namespace {

using nlohmann::json;
using teller = std::function<void(const std::string&)>;

constexpr duration run_limit = std::chrono::minutes{2};
constexpr std::uint32_t layers = 64;
constexpr double of_longer_max = 1.3; // step time over the longer of backward and all-reduce
constexpr std::size_t mib = std::size_t{1} << 20U;

struct configuration {
  std::string backward;
  std::uint32_t shards_a_rank{1};
  std::size_t bucket{0};
};

// What the rounds of one configuration measured.
struct series {
  configuration what;
  std::vector<double> step, step_p99, wait, backward, allreduce, of_longer;
};

class overlap_rounds {
public:
  overlap_rounds(job_runner& runner, const overlap_bench_settings& settings, const teller& tell)
      : runner_{runner}
      , settings_{settings}
      , tell_{tell} {}

  expected<void> run(std::vector<series>& all) {
    for (std::uint32_t round = 1; round <= settings_.repetitions; ++round)
      for (auto& one : all)
        if (auto ran = run_one(one, round); !ran) return ran;
    return {};
  }
  [[nodiscard]] std::size_t bytes() const { return (settings_.quick ? 16 : 128) * mib; }

private:
  // The sum alone, and backward alone, are measured beside each row: the machine may be another by then.
  expected<void> run_one(series& into, std::uint32_t round) {
    const auto sum = step({.backward = "none"}, 0, false);
    if (!sum) return sum.failure();
    const double sum_ms = sum->at("step_ms").at("p50");
    const double layer_us = sum_ms * 1000 / layers / into.what.shards_a_rank;
    auto unsummed = into.what;
    unsummed.bucket = 0;
    const auto backward = step(unsummed, layer_us, true);
    if (!backward) return backward.failure();
    const auto both = step(into.what, layer_us, false);
    if (!both) return both.failure();
    const double backward_ms = backward->at("step_ms").at("p50");
    const double step_ms = both->at("step_ms").at("p50");
    into.allreduce.push_back(sum_ms);
    into.backward.push_back(backward_ms);
    into.step.push_back(step_ms);
    into.step_p99.push_back(both->at("step_ms").at("p99"));
    into.wait.push_back(both->at("wait_ms"));
    into.of_longer.push_back(step_ms / std::max(sum_ms, backward_ms));
    char text[160];
    std::snprintf(text, sizeof text,
                  "round %u, %s, %u shards a rank, bucket %.2f MiB: backward %.1f, sum %.1f, step %.1f ms",
                  round, into.what.backward.c_str(), into.what.shards_a_rank,
                  static_cast<double>(into.what.bucket) / double{mib}, backward_ms, sum_ms, step_ms);
    tell_(text);
    return {};
  }

  expected<json> step(const configuration& what, double layer_us, bool alone) {
    std::vector<std::string> arguments{
        "--bytes",      std::to_string(bytes()),      "--layers",        std::to_string(layers),
        "--iterations", settings_.quick ? "5" : "15", "--backward",      what.backward,
        "--layer-us",   std::to_string(layer_us),     "--shards-a-rank", std::to_string(what.shards_a_rank),
        "--bucket",     std::to_string(what.bucket)};
    if (alone) arguments.emplace_back("--alone");
    const auto said = runner_.output_of(beside_this_program("overlap_step"), arguments, run_limit);
    if (!said) return said.failure();
    auto result = json::parse(*said, nullptr, false);
    if (result.is_discarded()) return error{errc::corrupt, "overlap_step: its output is not JSON"};
    return result;
  }

  job_runner& runner_;
  const overlap_bench_settings& settings_;
  const teller& tell_;
};

row row_of(const series& from, std::size_t bytes) {
  return {{"system", "troupe-shm"},
          {"backward", from.what.backward},
          {"ranks", 2},
          {"shards", 2 * from.what.shards_a_rank},
          {"bytes", bytes},
          {"bucket", from.what.bucket},
          {"backward_ms", median(from.backward)},
          {"allreduce_ms", median(from.allreduce)},
          {"step_ms", {{"p50", median(from.step)}, {"p99", median(from.step_p99)}}},
          {"wait_ms", median(from.wait)},
          {"of_longer", median(from.of_longer)}};
}

} // namespace

expected<bench_report> bench_overlap(job_runner& runner, const overlap_bench_settings& settings,
                                     const teller& tell) {
  overlap_rounds rounds{runner, settings, tell};
  std::vector<series> all;
  for (const std::size_t bucket : {std::size_t{0}, mib, 4 * mib, 16 * mib})
    all.push_back({{"stand-in", 1, bucket}});
  all.push_back({{"stand-in", 4, 0}});
  all.push_back({{"stand-in", 4, 4 * mib}});
  all.push_back({{"cpu", 1, 0}});
  all.push_back({{"cpu", 1, 4 * mib}});
  if (auto ran = rounds.run(all); !ran) return ran.failure();
  bench_report report{.bench = "overlap"};
  for (const auto& one : all)
    report.rows.push_back(row_of(one, rounds.bytes()));
  report.checks.push_back({"step / longer of backward and all-reduce, stand-in device, bucket 4 MiB",
                           median(all[2].of_longer), of_longer_max, false});
  report.ratios = {
      {"step with buckets of 4 MiB / without, stand-in device", median(ratios(all[2].step, all[0].step)), {}},
      {"the same, 4 shards a rank", median(ratios(all[5].step, all[4].step)), {}},
      {"the same, backward on the processor that sums", median(ratios(all[7].step, all[6].step)), {}}};
  report.notes = {
      "backward takes as long as the sum alone: what can be hidden is largest there",
      "stand-in: not a device; the rank's thread waits as long as one would compute, and its "
      "processor is free for the sum",
      "cpu: backward and sum need the same processor; where ranks have no core to spare nothing "
      "can be hidden",
      "of_longer: step over the longer of backward and all-reduce, each measured alone just before",
      "numbers are medians over " + std::to_string(settings.repetitions) + " rounds"};
  return report;
}

} // namespace troupe::bench
