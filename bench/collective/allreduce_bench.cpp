#include "bench/collective/allreduce_bench.hpp"

#include <algorithm>
#include <cstdio>

#include "bench/collective/allreduce_rows.hpp"
#include "bench/support/job_runner.hpp"
#include "runtime/base/units.hpp"

namespace troupe::bench {
namespace {

constexpr duration run_limit = std::chrono::minutes{2};
constexpr std::size_t kib = std::size_t{1} << 10U;
constexpr std::size_t mib = std::size_t{1} << 20U;
constexpr std::uint32_t shards = 8;

bool built(const std::string& program) {
  std::error_code failed;
  return std::filesystem::exists(beside_this_program(program), failed);
}

// In the order in which they take turns.
std::vector<allreduce_series> systems_with(std::uint32_t ranks, std::size_t bytes) {
  const auto shm = [&](std::uint32_t with, bool canonical) {
    return allreduce_series{.system = "troupe-shm",
                            .program = "allreduce_shm",
                            .ranks = ranks,
                            .bytes = bytes,
                            .canonical = canonical,
                            .shards = with};
  };
  const auto other = [&](const char* system, const char* program, std::vector<std::string> further = {}) {
    return allreduce_series{
        .system = system, .program = program, .ranks = ranks, .bytes = bytes, .further = std::move(further)};
  };
  std::vector<allreduce_series> out{shm(shards, true), shm(ranks, false)};
  if (ranks != 3) {
    out.push_back(other("openmpi", "allreduce_openmpi"));
    out.push_back(other("openmpi-kept-memory", "allreduce_openmpi", {"--keep-memory"}));
    out.push_back(other("gloo", "allreduce_gloo"));
  }
  if (ranks == 2) {
    out.push_back(other("memcpy", "allreduce_memcpy"));
    out.push_back(other("memcpy", "allreduce_memcpy"));
    out.back().ranks = 1;
  }
  return out;
}

std::uint32_t iterations_of(const allreduce_series& what, bool quick) {
  const std::uint32_t slower = what.system == "gloo" || what.ranks > 2 ? 4 : 1;
  const std::uint32_t count = what.bytes <= 4 * kib    ? 10'000
                              : what.bytes <= 64 * kib ? 4000
                              : what.bytes <= mib      ? 800
                              : what.bytes <= 16 * mib ? 60
                                                       : 20;
  return quick ? std::max(count / slower / 100, 5U) : std::max(count / slower, 10U);
}

expected<std::string> run_once(job_runner& runner, const allreduce_series& what, bool quick) {
  const auto program = beside_this_program(what.program).string();
  std::vector<std::string> arguments{"--ranks",      std::to_string(what.ranks),
                                     "--bytes",      std::to_string(what.bytes),
                                     "--iterations", std::to_string(iterations_of(what, quick))};
  if (quick) arguments.insert(arguments.end(), {"--warm-up-ms", "5"});
  if (what.shards != 0) arguments.insert(arguments.end(), {"--shards", std::to_string(what.shards)});
  arguments.insert(arguments.end(), what.further.begin(), what.further.end());
  if (what.program != "allreduce_openmpi") return runner.output_of(program, arguments, run_limit);
  // It binds two ranks to a processor each, and none where they outnumber processors; it yields then.
  arguments.insert(arguments.begin(),
                   {"--allow-run-as-root", "--oversubscribe", "-np", std::to_string(what.ranks), program});
  return runner.output_of("mpirun", arguments, run_limit);
}

std::string progress_of(const std::vector<allreduce_series>& group, std::uint32_t round) {
  auto text = "round " + std::to_string(round) + ", " + std::to_string(group.front().ranks) + " ranks, " +
              format_size(group.front().bytes) + ":";
  for (const auto& one : group) {
    char value[80];
    std::snprintf(value, sizeof value, " %s %.1f us,", one.system.c_str(), one.p50_us.back());
    text += value;
  }
  text.pop_back();
  return text;
}

void add_notes(bench_report& report, const std::vector<allreduce_series>& all) {
  report.notes = {
      "float32; every rank rewrites its input before each iteration, which is not timed; an iteration takes "
      "as "
      "long as its slowest rank",
      "troupe-shm, canonical: 8 logical shards, the same bits with any number of ranks; else a shard a rank. "
      "2 "
      "and 4 ranks add the same number of contributions either way; 3 ranks add 5 instead of 3",
      "troupe-shm leaves one shared result that all ranks read; gloo and openmpi leave each rank a copy, in "
      "place of its input",
      "openmpi-kept-memory: with malloc kept from giving memory back, so that its temporaries are touched "
      "once",
      "2 ranks have a processor each (openmpi binds them itself); gloo, with a thread of its own in each "
      "rank, is "
      "not bound, nor are 3 and 4 ranks",
      "memcpy: each of `ranks` processes copies its share of the bytes once. The sum of 2 ranks moves 3 "
      "times "
      "the bytes through 2 processors, a copy moves 2 times: 0.67 of two copying processors is the bound"};
  for (const auto& one : all) {
    if (one.algorithms.empty()) continue;
    auto names = one.algorithms;
    std::ranges::sort(names);
    names.erase(std::unique(names.begin(), names.end()), names.end());
    std::string text =
        one.system + ", " + std::to_string(one.ranks) + " ranks, " + format_size(one.bytes) + ":";
    for (const auto& name : names)
      text += " " + name;
    report.notes.push_back(text);
  }
}

} // namespace

expected<bench_report> bench_allreduce(job_runner& runner, const allreduce_bench_settings& settings,
                                       const std::function<void(const std::string&)>& tell) {
  const std::vector<std::size_t> sizes =
      settings.quick ? std::vector{4 * kib, mib} : std::vector{4 * kib, 64 * kib, mib, 16 * mib, 64 * mib};
  std::vector<std::vector<allreduce_series>> groups;
  bool lacking = false;
  for (const std::uint32_t ranks : {2U, 4U, 3U}) {
    for (const auto bytes : sizes) {
      groups.push_back(systems_with(ranks, bytes));
      lacking |= std::erase_if(groups.back(), [](const auto& one) { return !built(one.program); }) != 0;
    }
  }
  for (std::uint32_t round = 1; round <= settings.repetitions; ++round) {
    for (auto& group : groups) {
      for (auto& one : group) {
        const auto said = run_once(runner, one, settings.quick);
        if (!said) return said.failure();
        if (auto added = add_run(one, *said); !added) return added.failure();
      }
      tell(progress_of(group, round));
    }
  }
  bench_report report{.bench = "allreduce"};
  std::vector<allreduce_series> all;
  for (auto& group : groups)
    std::ranges::move(group, std::back_inserter(all));
  for (const auto& one : all)
    report.rows.push_back(row_of(one));
  report.ratios = ratios_of(all);
  add_notes(report, all);
  if (lacking)
    report.notes.push_back(
        "no row for a baseline that this build lacks: scripts/setup --baselines installs what "
        "they need, then configure and build again");
  return report;
}

} // namespace troupe::bench
