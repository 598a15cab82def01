// Flight ring: the last calls between ranks that one rank made, in memory that outlives it.
//
// Flow:     the device's thread -> add, update -> [flight ring] -> records, on any thread of any process
// Owns:     its words only: lock-free, without pointers, so that it may lie in a shared mapping.
// Runs on:  one writer; readers never hold it up.
// Invariants:
//   FR-1    what is read is a record that was written, whole; one that is being overwritten is left out.
//   FR-2    writing takes a fixed number of stores: no allocation, no lock, no system call.
//   FR-3    whatever the words hold (the writer may have died, or run wild), reading ends and yields records
//           whose enumerations are in range.
// Why:      docs/design/0035-flight-recorder.md
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "runtime/seams/call_descriptor.hpp"

namespace troupe {

enum class call_outcome : std::uint8_t {
  pending,
  done,
  aborted,
  failed,
  left_out, // it ended with the receipt of another sum: this rank was not in it (CO-4)
};
inline constexpr std::size_t call_outcomes = 5;
[[nodiscard]] std::string_view to_string(call_outcome outcome);

// One call, as its rank saw it. Times are of the rank's clock seam; 0: not yet.
struct flight_record {
  std::uint64_t id{0}; // 1, 2, 3, ... of all calls that the process made
  std::uint64_t generation{0};
  std::uint64_t sequence{0}; // among collectives of the group, or sends or receives of this peer; 0: none
  std::uint64_t step{0};     // that was being computed
  std::uint64_t elements{0};
  std::int64_t created_ns{0}; // called
  std::int64_t started_ns{0}; // nothing of the group was under way before it any more
  std::int64_t finished_ns{0};
  std::uint32_t group{0}; // 0: the communicator itself, 1: its rank group; others: flight_recorder.cpp
  std::uint32_t peer{0};  // rank of the generation: root of a broadcast, other one of send and receive
  collective_call call{collective_call::sum};
  element_type type{element_type::float32};
  reduce_op op{reduce_op::sum};
  call_outcome outcome{call_outcome::pending};
  std::uint32_t unused{0};

  [[nodiscard]] call_descriptor what() const { return {call, type, op, peer, elements}; }
  [[nodiscard]] bool finished() const { return outcome == call_outcome::done; }
};

inline constexpr std::size_t flight_records_max = 1024;

class flight_ring {
public:
  // Gives the record its id, and keeps it in the place of the oldest.
  void add(flight_record& made) noexcept;
  // The record of that id has changed; ignored once it was overwritten.
  void update(const flight_record& changed) noexcept;

  // Oldest first.
  [[nodiscard]] std::vector<flight_record> records() const;
  [[nodiscard]] std::optional<flight_record> newest() const noexcept;
  [[nodiscard]] std::uint64_t added() const noexcept { return added_.load(std::memory_order_acquire); }

private:
  static constexpr std::size_t words = sizeof(flight_record) / sizeof(std::uint64_t);
  static_assert(sizeof(flight_record) == words * sizeof(std::uint64_t));
  static_assert(std::atomic<std::uint64_t>::is_always_lock_free);
  struct slot {
    std::atomic<std::uint64_t> version{0}; // odd: is being written
    std::array<std::atomic<std::uint64_t>, words> content{};
  };
  static void write(slot& into, const flight_record& what) noexcept;
  [[nodiscard]] std::optional<flight_record> read(std::uint64_t id) const noexcept;

  std::atomic<std::uint64_t> added_{0};
  std::array<slot, flight_records_max> slots_{};
};

} // namespace troupe
