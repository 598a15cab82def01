// Urgent trips: round trips of a control message, on an idle path and beside bulk on the same path.
//
// Flow:     office.send_control, the peer's answer, and the next one `urgent_pause` later: trips at their own
//           times, as heartbeats are. Trips back to back would crowd into the moments when they are quick.
//           First alone; then while transfers of `large_bulk_bytes` are under way, one after the other.
// Counts:   half of a trip's time; beside bulk only trips during which one transfer was under way all the
//           time. From the first send until the sender knows that it is whole: with its digests, that is.
// Runs on:  the event loop. `answer_urgent` is the other end.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "actors/remote/post_office.hpp"
#include "bench/message/program.hpp"
#include "runtime/seams/clock.hpp"

namespace troupe::bench {

inline constexpr std::size_t large_bulk_bytes = 64U << 20U;
inline constexpr duration urgent_pause = std::chrono::milliseconds{1};

class urgent_trips {
public:
  using over = std::function<void(expected<urgent_times>)>;
  // Takes the office's control handler. `trips` of each sort.
  urgent_trips(post_office& office, clock_seam& clock, incarnation_id peer, std::uint64_t trips, over done);
  void start() { leave(); }

private:
  void leave();
  void on_answer();
  void send_large();
  void end(expected<urgent_times> result);

  post_office& office_;
  clock_seam& clock_;
  incarnation_id peer_;
  std::uint64_t trips_;
  over done_;
  urgent_times times_;
  bench_clock::time_point left_;
  std::vector<std::byte> large_;
  bool under_way_{false};        // a transfer is
  std::uint64_t transfer_{0};    // its number, counted down from the highest: no other transfer has it
  std::uint64_t left_beside_{0}; // the transfer under way when the trip began; 0: none
};

// Every control message goes back to where it came from.
void answer_urgent(post_office& office);

} // namespace troupe::bench
