#include "bench/collective/allreduce_program.hpp"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>

#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "bench/support/quantiles.hpp"

namespace troupe::bench {
namespace {

using steady = std::chrono::steady_clock;

constexpr std::uint32_t warm_up_min = 3; // iterations, in which sums are looked at wholly
constexpr std::uint32_t values = 100;    // small whole numbers: their sums are exact

bool right(std::span<const float> sum, float value, bool wholly) {
  if (sum.empty()) return false;
  if (wholly) return std::ranges::all_of(sum, [&](float each) { return each == value; });
  return sum.front() == value && sum[sum.size() / 2] == value && sum.back() == value;
}

// Zeroed memory that forked processes share.
class shared_memory {
public:
  explicit shared_memory(std::size_t bytes)
      : bytes_{bytes}
      , at_{::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1,
                   0)} {}
  ~shared_memory() {
    if (good()) ::munmap(at_, bytes_);
  }
  shared_memory(const shared_memory&) = delete;
  shared_memory& operator=(const shared_memory&) = delete;
  [[nodiscard]] bool good() const { return at_ != MAP_FAILED; }
  [[nodiscard]] void* at() const { return at_; }

private:
  std::size_t bytes_;
  void* at_;
};

// Ranks that yield to each other are left on one processor for long; ranks that compute are not.
void take_a_processor(std::uint32_t rank, std::uint32_t ranks) {
  cpu_set_t usable;
  CPU_ZERO(&usable);
  if (::sched_getaffinity(0, sizeof usable, &usable) != 0) return;
  if (static_cast<std::uint32_t>(CPU_COUNT(&usable)) < ranks) return;
  auto skipped = rank;
  for (std::size_t number = 0; number < CPU_SETSIZE; ++number) {
    if (!CPU_ISSET(number, &usable) || skipped-- > 0) continue;
    cpu_set_t own;
    CPU_ZERO(&own);
    CPU_SET(number, &own);
    (void)::sched_setaffinity(0, sizeof own, &own);
    return;
  }
}

int be_a_rank(const rank_setup& setup, rank_board& board, std::uint32_t rank,
              const allreduce_options& options) {
  if (rank < options.places.size())
    if (auto entered = enter(options.places[rank]); !entered)
      return tell_failure("rank " + std::to_string(rank), entered.failure());
  auto operation = setup(rank);
  if (!operation) return tell_failure("rank " + std::to_string(rank), operation.failure());
  const auto ran = run_rank(**operation, board, rank, options);
  return ran ? 0 : tell_failure("rank " + std::to_string(rank), ran.failure());
}

// Waits for all; the first that fails takes the others with it.
bool wait_for(const std::vector<pid_t>& ranks) {
  bool good = true;
  for (std::size_t left = ranks.size(); left > 0; --left) {
    int status = 0;
    (void)::waitpid(-1, &status, 0);
    if (status == 0 || !good) continue;
    good = false;
    for (const auto pid : ranks)
      ::kill(pid, SIGKILL);
  }
  return good;
}

} // namespace

parsed_allreduce_options parse_allreduce_options(int argc, char** argv, const std::string& about) {
  parsed_allreduce_options out;
  auto& into = out.options;
  CLI::App app{about + "; prints one JSON object"};
  app.add_option("--ranks", into.ranks)->check(CLI::Range(1U, 64U));
  app.add_option("--bytes", into.bytes, "of one rank's input, a multiple of 4")
      ->check(CLI::Range(std::size_t{4}, std::size_t{1} << 32U));
  app.add_option("--iterations", into.iterations)->check(CLI::Range(1U, 10'000'000U));
  app.add_option("--warm-up-ms", into.warm_up_ms, "before times count")->check(CLI::Range(0U, 60'000U));
  app.add_option("--shards", into.shards, "logical shards of Troupe's sum (as many as ranks)")
      ->check(CLI::Range(1U, 1024U));
  app.add_flag("--transport-only", into.transport_only, "the ring: the same bytes by the transport under it");
  app.add_flag("--two-levels", into.two_levels, "the ring: in memory between ranks of one --place first");
  app.add_flag("--keep-memory", into.keep_memory, "Open MPI: malloc gives nothing back to the system");
  std::vector<std::string> places;
  app.add_option("--place", places, "NAMESPACE,DEVICE,ADDRESS: of a rank, each (this host)");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& ended) {
    out.exit_code = app.exit(ended) == 0 ? 0 : 2;
  }
  for (const auto& text : places) {
    auto place = parse_network_place(text);
    if (place) into.places.push_back(std::move(*place));
    if (!place) out.exit_code = tell_failure("--place", place.failure());
  }
  into.bytes -= into.bytes % sizeof(float);
  if (into.shards == 0) into.shards = into.ranks;
  return out;
}

expected<void> run_rank(rank_operation& operation, rank_board& board, std::uint32_t rank,
                        const allreduce_options& options) {
  const auto times = board.times_of(rank);
  const auto warm_at = steady::now() + std::chrono::milliseconds{options.warm_up_ms};
  std::uint32_t counted = 0;
  for (std::uint32_t i = 0; counted < options.iterations; ++i) {
    const bool warm = i >= warm_up_min && steady::now() >= warm_at;
    if (rank == 0 && board.first_counted() == 0 && warm) board.count_from(i + 1);
    const bool counts = board.counts(i);
    const auto value = static_cast<float>(1 + i % values);
    for (const auto input : operation.inputs())
      std::ranges::fill(input, value);
    board.align();
    const auto begin = steady::now();
    const auto sum = operation.run();
    const auto end = steady::now();
    if (!sum) return sum.failure();
    if (!right(*sum, value * static_cast<float>(operation.summands()), i < warm_up_min))
      return error{errc::corrupt, "a sum is wrong"};
    if (counts) times[counted++] = std::chrono::nanoseconds{end - begin}.count();
  }
  board.align(); // who leaves early would close connections that others still use
  return {};
}

allreduce_result result_of(const rank_board& board) {
  const auto slowest = board.slowest_us();
  return {
      .min_us = quantile(slowest, 0), .p50_us = quantile(slowest, 0.5), .p99_us = quantile(slowest, 0.99)};
}

expected<allreduce_result> measure_forked(const allreduce_options& options, const rank_setup& setup) {
  const shared_memory memory{rank_board::bytes_for(options.ranks, options.iterations)};
  if (!memory.good()) return error{errc::storage_failed, "no memory for the measurements"};
  rank_board board{memory.at(), options.ranks, options.iterations};
  std::vector<pid_t> ranks;
  for (std::uint32_t rank = 0; rank < options.ranks; ++rank) {
    const auto pid = ::fork();
    if (pid == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (options.pinned) take_a_processor(rank, options.ranks);
      ::_exit(be_a_rank(setup, board, rank, options));
    }
    ranks.push_back(pid);
  }
  if (!wait_for(ranks)) return error{errc::process_died, "a rank has failed"};
  return result_of(board);
}

int tell(const allreduce_options& options, const allreduce_result& result) {
  nlohmann::ordered_json out{
      {"ranks", options.ranks},
      {"bytes", options.bytes},
      {"iterations", options.iterations},
      {"time_us", {{"min", result.min_us}, {"p50", result.p50_us}, {"p99", result.p99_us}}}};
  if (!result.algorithm.empty()) out["algorithm"] = result.algorithm;
  std::puts(out.dump().c_str());
  return 0;
}

int tell_failure(const std::string& program, const error& cause) {
  std::fprintf(stderr, "%s: %s\n", program.c_str(), cause.text.c_str());
  return exit_code_of(cause.code);
}

} // namespace troupe::bench
