#include "bench/message/message_bench.hpp"

#include <algorithm>
#include <cstdio>

#include "bench/message/message_rows.hpp"
#include "bench/support/job_runner.hpp"

namespace troupe::bench {
namespace {

constexpr duration run_limit = std::chrono::minutes{2};
constexpr unsigned shm_repeats_max = 3;

struct message_counts {
  double round_trips, stream, bulk, urgent;
};

// CAF's network module takes so long that fewer messages tell as much; so do two processes that spin where no
// two processors are free.
std::vector<message_series> all_series() {
  std::vector<message_series> all;
  for (const std::string lane : {"tcp", "shm"})
    for (const std::string wake : {"sleep", "poll"})
      for (const auto& [system, program] :
           {std::pair{"troupe", "message_troupe"}, std::pair{"ucx_perftest", "message_ucx"}})
        all.push_back({.system = system,
                       .program = program,
                       .lane = lane,
                       .wake = wake,
                       .round_trip_share = wake == "poll" ? 0.1 : 1});
  all.push_back({.system = "caf_io", .program = "message_caf_io", .share = 0.25});
  all.push_back({.system = "caf_io_sharing",
                 .program = "message_caf_io",
                 .share = 0.25,
                 .further = {"--scheduler", "sharing"}});
  all.push_back({.system = "grpc", .program = "message_grpc"});
  return all;
}

bool built(const message_series& what) {
  std::error_code failed;
  return std::filesystem::exists(beside_this_program(what.program), failed);
}

std::vector<std::string> arguments_of(const message_series& what, const message_counts& counts) {
  const auto count = [&](double of) { return std::to_string(static_cast<std::uint64_t>(of * what.share)); };
  std::vector<std::string> arguments{"--lane",        what.lane,
                                     "--wake",        what.wake,
                                     "--round-trips", count(counts.round_trips * what.round_trip_share),
                                     "--stream",      count(counts.stream),
                                     "--bulk",        count(counts.bulk),
                                     "--urgent",      count(counts.urgent * what.round_trip_share)};
  arguments.insert(arguments.end(), what.further.begin(), what.further.end());
  return arguments;
}

std::string progress_of(const message_series& one, std::uint32_t round) {
  char text[200];
  std::snprintf(text, sizeof text,
                "round %u, %s, %s, %s: half round trip %.1f us, %.0f messages/s, %.2f GB/s", round,
                one.system.c_str(), one.lane.c_str(), one.wake.c_str(), one.half_rtt_p50.back(),
                one.messages_per_s.back(), one.bytes_per_s.back() / 1e9);
  return text;
}

// The shm lanes of UCX 1.13 lose healthy peers now and then: such a run is told of, and repeated.
expected<std::string> run_once(job_runner& runner, message_series& what, const message_counts& counts) {
  for (unsigned again = 0;; ++again) {
    auto said = runner.output_of(beside_this_program(what.program), arguments_of(what, counts), run_limit);
    if (said || what.lane != "shm" || again == shm_repeats_max || runner.interrupted() != 0) return said;
    what.notes.push_back("a run failed and was repeated (UCX's shm lanes lose healthy peers)");
  }
}

// Once, by the same program with counting memory: its time does not count.
expected<void> count_allocations(job_runner& runner, message_series& into, const message_counts& counts) {
  const auto program = beside_this_program("message_troupe_counted");
  const auto said = runner.output_of(program, arguments_of(into, counts), run_limit);
  if (!said) return said.failure();
  message_series counted{.program = program};
  if (auto added = add_run(counted, *said); !added) return added;
  into.allocations = counted.allocations;
  return {};
}

void add_notes(bench_report& report, const std::vector<message_series>& all) {
  report.notes = {
      "half round trip: an 8 B message out and one back between two processes, halved; troupe and caf_io: "
      "from "
      "actor to actor",
      "messages of 100 B: one way, counted at the receiver; 1 MiB: payloads received in whole; troupe by its "
      "bulk path, caf_io and grpc as messages",
      "caf_io: CAF's network module as it comes; caf_io_sharing: with CAF's scheduler that wakes up sooner",
      "urgent: control messages of a job (heartbeats, lifecycle), which go in front; beside bulk: while a "
      "transfer of 64 MiB "
      "is under way on the same path",
      "ucx_perftest: raw UCX active messages by a program of this build, with the same lanes and options"};
  for (const auto& one : all)
    for (const auto& note : one.notes)
      if (const auto text = one.system + ", " + one.lane + ", " + one.wake + ": " + note;
          std::ranges::find(report.notes, text) == report.notes.end())
        report.notes.push_back(text);
}

} // namespace

expected<bench_report> bench_message(job_runner& runner, const message_bench_settings& settings,
                                     const std::function<void(const std::string&)>& tell) {
  const auto counts =
      settings.quick ? message_counts{400, 20'000, 16, 100} : message_counts{20'000, 400'000, 512, 500};
  auto all = all_series();
  bench_report report{.bench = "message"};
  const bool without_grpc = std::erase_if(all, [](const auto& one) { return !built(one); }) != 0;
  for (std::uint32_t i = 1; i <= settings.repetitions; ++i) {
    for (auto& one : all) {
      const auto said = run_once(runner, one, counts);
      if (!said) return said.failure();
      if (auto added = add_run(one, *said); !added) return added.failure();
      tell(progress_of(one, i));
    }
  }
  for (auto& one : all)
    if (one.system == "troupe")
      if (auto counted = count_allocations(runner, one, counts); !counted) return counted.failure();
  for (const auto& one : all)
    for (auto& each : rows_of(one))
      report.rows.push_back(std::move(each));
  report.ratios = ratios_of(all);
  add_notes(report, all);
  if (without_grpc)
    report.notes.push_back("no row for a baseline that this build lacks: scripts/setup --baselines installs "
                           "what gRPC's needs, then configure and build again");
  return report;
}

} // namespace troupe::bench
