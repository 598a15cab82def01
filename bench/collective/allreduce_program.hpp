// What the programs of `bench allreduce` share: options, the loop of a rank, forked ranks, the result.
//
// An iteration: every rank rewrites its input, all line up (rank_board), then the operation is timed; its
// time is that of its slowest rank. Sums are looked at: wholly in the warm-up, at three places afterwards.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "bench/collective/rank_board.hpp"
#include "bench/support/network_place.hpp"
#include "runtime/base/error.hpp"

namespace troupe::bench {

struct allreduce_options {
  std::uint32_t ranks{2};
  std::size_t bytes{std::size_t{1} << 20U}; // a multiple of 4
  std::uint32_t iterations{100};
  std::uint32_t warm_up_ms{50};
  bool pinned{true};                   // each rank to a processor, where there are enough
  std::uint32_t shards{0};             // troupe's: logical shards; 0: one a rank
  std::vector<network_place> places{}; // by rank; empty: this host
  bool transport_only{false};          // the ring's: the transport under it, instead of the sum
  bool two_levels{false};              // the ring's: in memory between ranks of one place first
  bool keep_memory{false};             // Open MPI's: freed memory stays with the process

  [[nodiscard]] std::size_t elements() const { return bytes / sizeof(float); }
};

// One rank's side of what is measured.
class rank_operation {
public:
  virtual ~rank_operation() = default;
  // What this rank rewrites before each iteration, with one value; asked for each time.
  [[nodiscard]] virtual std::vector<std::span<float>> inputs() = 0;
  // Timed. The result, where this rank finds it.
  [[nodiscard]] virtual expected<std::span<const float>> run() = 0;
  // How many inputs of all ranks an element of the result is the sum of.
  [[nodiscard]] virtual std::uint32_t summands() const = 0;
};
// In the rank's own process.
using rank_setup = std::function<expected<std::unique_ptr<rank_operation>>(std::uint32_t rank)>;

struct allreduce_result {
  double min_us{0}, p50_us{0}, p99_us{0};
  std::string algorithm{}; // where the system has several: the one that was fastest
};

// Ends with a message on a bad option (exit code 2), or after --help.
struct parsed_allreduce_options {
  allreduce_options options;
  std::optional<int> exit_code;
};
[[nodiscard]] parsed_allreduce_options parse_allreduce_options(int argc, char** argv,
                                                               const std::string& about);

// The loop of one rank. errc: as the operation; corrupt: a sum was wrong.
[[nodiscard]] expected<void> run_rank(rank_operation& operation, rank_board& board, std::uint32_t rank,
                                      const allreduce_options& options);
[[nodiscard]] allreduce_result result_of(const rank_board& board);
// Forks the ranks; call it while the process has one thread. When one fails the others are killed.
[[nodiscard]] expected<allreduce_result> measure_forked(const allreduce_options& options,
                                                        const rank_setup& setup);

// Prints the result as one JSON object; exit code.
[[nodiscard]] int tell(const allreduce_options& options, const allreduce_result& result);
[[nodiscard]] int tell_failure(const std::string& program, const error& cause);

} // namespace troupe::bench
