#include "bench/collective/allreduce_rows.hpp"

#include <algorithm>
#include <array>

#include "bench/support/quantiles.hpp"
#include "runtime/base/units.hpp"

namespace troupe::bench {
namespace {

constexpr std::size_t kib = std::size_t{1} << 10U;
constexpr std::size_t mib = std::size_t{1} << 20U;
constexpr std::array baselines{"gloo", "openmpi", "openmpi-kept-memory"};

class finder {
public:
  explicit finder(const std::vector<allreduce_series>& all)
      : all_{all} {}

  [[nodiscard]] const allreduce_series* series(const std::string& system, std::uint32_t ranks,
                                               std::size_t bytes, bool canonical = false) const {
    const auto found = std::ranges::find_if(all_, [&](const allreduce_series& each) {
      return each.system == system && each.ranks == ranks && each.bytes == bytes &&
             each.canonical == canonical;
    });
    return found == all_.end() ? nullptr : &*found;
  }
  [[nodiscard]] std::vector<double> times(const std::string& system, std::uint32_t ranks, std::size_t bytes,
                                          bool canonical = false) const {
    const auto* found = series(system, ranks, bytes, canonical);
    return found == nullptr ? std::vector<double>{} : found->p50_us;
  }
  [[nodiscard]] std::vector<double> own(std::uint32_t ranks, std::size_t bytes) const {
    return times("troupe-shm", ranks, bytes, true);
  }
  // Run by run the fastest of the other systems.
  [[nodiscard]] std::vector<double> best_baseline(std::uint32_t ranks, std::size_t bytes) const {
    std::vector<double> best;
    for (const std::string system : baselines) {
      const auto one = times(system, ranks, bytes);
      if (best.empty()) best = one;
      for (std::size_t i = 0; i < std::min(best.size(), one.size()); ++i)
        best[i] = std::min(best[i], one[i]);
    }
    return best;
  }
  [[nodiscard]] std::vector<std::size_t> sizes() const {
    std::vector<std::size_t> out;
    for (const auto& one : all_)
      if (std::ranges::find(out, one.bytes) == out.end()) out.push_back(one.bytes);
    return out;
  }

private:
  const std::vector<allreduce_series>& all_;
};

class ratio_list {
public:
  void add(const std::string& name, const std::vector<double>& one, const std::vector<double>& other,
           const std::string& aim) {
    if (const auto pairs = ratios(one, other); !pairs.empty()) all.push_back({name, median(pairs), aim});
  }
  std::vector<ratio> all;
};

std::string aim_of_two_ranks(std::size_t bytes) {
  if (bytes == mib) return "at least 1.7";
  return bytes == 16 * mib || bytes == 64 * mib ? "at least 2.5" : "";
}

std::string where(std::uint32_t ranks, std::size_t bytes) {
  return ", " + std::to_string(ranks) + " ranks, " + format_size(bytes);
}

} // namespace

expected<void> add_run(allreduce_series& to, const std::string& output) {
  const auto said = row::parse(output, nullptr, false);
  try {
    const double fastest = said.at("time_us").at("min");
    const double p50 = said.at("time_us").at("p50");
    const double p99 = said.at("time_us").at("p99");
    if (said.at("bytes") != to.bytes || !(p50 > 0))
      return error{errc::corrupt, to.program + ": a result of something else"};
    to.min_us.push_back(fastest);
    to.p50_us.push_back(p50);
    to.p99_us.push_back(p99);
    if (said.contains("algorithm")) to.algorithms.push_back(said.at("algorithm"));
  } catch (const nlohmann::json::exception& malformed) {
    return error{errc::corrupt, to.program + ": " + malformed.what()};
  }
  return {};
}

row row_of(const allreduce_series& from) {
  const auto p50 = median(from.p50_us);
  const double algbw = p50 > 0 ? static_cast<double>(from.bytes) / p50 / 1000 : 0;
  const double moved = from.system == "memcpy" || from.ranks < 2 ? 1 : 2 * (from.ranks - 1.0) / from.ranks;
  row out{{"system", from.system},
          {"canonical", from.canonical},
          {"ranks", from.ranks},
          {"shards", from.shards == 0 ? row() : row(from.shards)},
          {"bytes", from.bytes},
          {"time_us", {{"min", median(from.min_us)}, {"p50", p50}, {"p99", median(from.p99_us)}}},
          {"algbw_gb_s", algbw},
          {"busbw_gb_s", algbw * moved}};
  return out;
}

std::vector<ratio> ratios_of(const std::vector<allreduce_series>& all) {
  const finder find{all};
  ratio_list out;
  for (const auto bytes : find.sizes())
    out.add("time, the fastest of Gloo and Open MPI / troupe" + where(2, bytes), find.best_baseline(2, bytes),
            find.own(2, bytes), aim_of_two_ranks(bytes));
  for (const auto bytes : find.sizes())
    out.add("time, the fastest of Gloo and Open MPI / troupe" + where(4, bytes), find.best_baseline(4, bytes),
            find.own(4, bytes), "at least 1");
  out.add("time, troupe / Open MPI" + where(2, 4 * kib), find.own(2, 4 * kib),
          find.times("openmpi", 2, 4 * kib), "at most 2");
  out.add("bandwidth, troupe with 2 ranks / one copying processor, 64 MiB", find.times("memcpy", 1, 64 * mib),
          find.own(2, 64 * mib), "at least 0.75");
  const auto* copied = find.series("memcpy", 1, 64 * mib);
  const auto* summed = find.series("troupe-shm", 2, 64 * mib, true);
  if (copied != nullptr && summed != nullptr)
    out.add("bandwidth, troupe with 2 ranks / one copying processor, 64 MiB, fastest iterations",
            copied->min_us, summed->min_us, "");
  out.add("bandwidth, troupe with 2 ranks / two copying processors, 64 MiB",
          find.times("memcpy", 2, 64 * mib), find.own(2, 64 * mib), "");
  for (const std::uint32_t ranks : {2U, 4U, 3U})
    for (const auto bytes : find.sizes())
      out.add("time, 8 shards / a shard a rank" + where(ranks, bytes), find.own(ranks, bytes),
              find.times("troupe-shm", ranks, bytes), ranks == 3 ? "" : "at most 1.15");
  return std::move(out.all);
}

} // namespace troupe::bench
