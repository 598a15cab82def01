// What the programs of `bench message` share: their options, what they measure, how they say it.
//
// Each program is two processes of itself: the one that was started measures, the one that it starts
// answers. Three phases, one after the other, the same in every program:
//   round trips   8 B out, 8 B back; the next one leaves when the answer has come. Half of it is told.
//   stream        100 B one way, at most `stream_window` not yet acknowledged; timed at the receiver.
//   bulk          1 MiB payloads one way, `bulk_window` under way; from the first send until the sender
//                 knows that the last one has arrived.
// A program with urgent messages has a fourth: their round trips, alone and beside bulk (urgent_trips.hpp).
// Prints one JSON object.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace troupe::bench {

using bench_clock = std::chrono::steady_clock;

inline constexpr std::size_t ping_bytes = 8;
inline constexpr std::size_t piece_bytes = 100;
inline constexpr std::size_t bulk_bytes = 1U << 20U;
inline constexpr std::uint64_t stream_window = 2048; // pieces
inline constexpr std::uint64_t stream_window_min = 32;
inline constexpr std::uint64_t stream_ack_every = 32;
inline constexpr unsigned bulk_window = 4;         // payloads
inline constexpr std::uint64_t warm_up_max = 2000; // round trips

struct program_options {
  std::string lane{"tcp"};   // tcp, shm
  std::string wake{"sleep"}; // sleep, poll
  std::uint64_t round_trips{20'000};
  std::uint64_t stream{400'000};
  std::uint64_t bulk{512};
  std::string scheduler{"default"}; // CAF's, in its own program: default, sharing
  std::uint64_t urgent{500};
  int peer{-1}; // the descriptor to the process that started this one; -1: this one measures

  [[nodiscard]] std::uint64_t warm_up() const { return std::min(round_trips / 4 + 1, warm_up_max); }
};

// Of the main thread and others together; per message.
struct allocation_counts {
  double round_trip{0}; // one message sent and one received
  double sender{0};     // of the stream
  double receiver{0};
};

// Half round trips of an urgent message, alone and beside bulk on the same path.
struct urgent_times {
  std::vector<double> idle_us, beside_bulk_us;
};

struct program_result {
  std::vector<double> half_rtt_us;
  double stream_s{0}; // from the first piece to the last, at the receiver
  double bulk_s{0};
  std::optional<urgent_times> urgent;           // where the program has urgent messages
  std::optional<allocation_counts> allocations; // where the program counts them
  std::vector<std::string> notes;
};

// Ends the process on a bad option (exit code 2), or after --help; nothing else has happened then.
struct parsed_options {
  program_options options;
  std::optional<int> exit_code;
};
[[nodiscard]] parsed_options parse_options(int argc, char** argv, const std::string& about);
// As the peer takes them.
[[nodiscard]] std::vector<std::string> peer_arguments(const program_options& options);

void print_result(const program_options& options, const program_result& result);

[[nodiscard]] inline double seconds_since(bench_clock::time_point start) {
  return std::chrono::duration<double>(bench_clock::now() - start).count();
}
[[nodiscard]] std::optional<std::uint64_t> allocations_now(); // nothing where they are not counted

} // namespace troupe::bench
