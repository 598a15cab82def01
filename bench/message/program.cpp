#include "bench/message/program.hpp"

#include <algorithm>
#include <cstdio>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "bench/support/quantiles.hpp"
#include "runtime/host/allocation_hook.hpp"

namespace troupe::bench {

parsed_options parse_options(int argc, char** argv, const std::string& about) {
  parsed_options out;
  auto& into = out.options;
  CLI::App app{about + "; prints one JSON object"};
  app.add_option("--lane", into.lane)->check(CLI::IsMember({"tcp", "shm"}));
  app.add_option("--wake", into.wake)->check(CLI::IsMember({"sleep", "poll"}));
  app.add_option("--round-trips", into.round_trips)->check(CLI::Range(1, 100'000'000));
  app.add_option("--stream", into.stream, "messages of 100 B")->check(CLI::Range(2, 1'000'000'000));
  app.add_option("--bulk", into.bulk, "payloads of 1 MiB")->check(CLI::Range(1, 1'000'000));
  app.add_option("--scheduler", into.scheduler, "of CAF, in its own program")
      ->check(CLI::IsMember({"default", "sharing"}));
  app.add_option("--urgent", into.urgent, "round trips of urgent messages, alone and beside bulk")
      ->check(CLI::Range(1, 1'000'000));
  app.add_option("--peer", into.peer, "(private)")->group("");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& ended) {
    out.exit_code = app.exit(ended) == 0 ? 0 : 2;
  }
  return out;
}

std::vector<std::string> peer_arguments(const program_options& options) {
  return {"--lane",        options.lane,
          "--wake",        options.wake,
          "--round-trips", std::to_string(options.round_trips),
          "--stream",      std::to_string(options.stream),
          "--bulk",        std::to_string(options.bulk),
          "--scheduler",   options.scheduler,
          "--urgent",      std::to_string(options.urgent)};
}

void print_result(const program_options& options, const program_result& result) {
  nlohmann::ordered_json out{
      {"round_trip",
       {{"bytes", ping_bytes},
        {"p50_us", quantile(result.half_rtt_us, 0.5)},
        {"p99_us", quantile(result.half_rtt_us, 0.99)}}},
      {"stream", {{"bytes", piece_bytes}, {"messages", options.stream}, {"seconds", result.stream_s}}},
      {"bulk", {{"bytes", bulk_bytes}, {"messages", options.bulk}, {"seconds", result.bulk_s}}}};
  if (const auto& urgent = result.urgent) {
    const auto told = [](const std::vector<double>& half_us) {
      return nlohmann::ordered_json{{"p50_us", quantile(half_us, 0.5)}, {"p99_us", quantile(half_us, 0.99)}};
    };
    out["urgent"] = {{"bytes", ping_bytes},
                     {"idle", told(urgent->idle_us)},
                     {"beside_bulk", told(urgent->beside_bulk_us)}};
  }
  if (const auto& counted = result.allocations) {
    out["allocations"] = {
        {"round_trip", counted->round_trip}, {"sender", counted->sender}, {"receiver", counted->receiver}};
  }
  out["notes"] = result.notes;
  std::puts(out.dump().c_str());
}

std::optional<std::uint64_t> allocations_now() {
  if (troupe_allocations == nullptr) return std::nullopt;
  std::uint64_t main_thread = 0;
  std::uint64_t others = 0;
  troupe_allocations(&main_thread, &others);
  return main_thread + others;
}

} // namespace troupe::bench
