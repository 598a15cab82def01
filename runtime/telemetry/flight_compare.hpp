// Flight comparison: the dumps of one generation's ranks -> the first thing in which they do not agree.
//
// A pure function. What is compared, call by call in the order of their numbers:
//   - a rank that did not enter a collective that others wait in, or one half of a send and its receive;
//   - a rank that called something else, of another type, operation, root or size (call_descriptor.hpp);
//   - a rank that holds the receipt of another sum: it was not in this one;
//   - of ranks that all wait in one collective, those whose arrivals are behind.
// Where all that agrees, a rank that has ended is named for its end.
// Invariants:
//   FX-1    nobody is blamed for what a dump has lost: records before its first and, if it was cut off,
//           records after its last are unknown.
//   FX-2    where a rank has ended or failed, those that were on their way to a call are not blamed for
//           being late.
//   FX-3    where two ranks differ and no third one tells which is right, both are named.
// Why:      docs/design/0035-flight-recorder.md
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "runtime/telemetry/flight_dump.hpp"

namespace troupe {

enum class flight_verdict : std::uint8_t {
  agree,
  missing,   // did not enter
  different, // entered something else
  left_out,  // was not in the sum
  behind,    // entered, and has not arrived
  ended,     // all calls agree, but it has ended
  unheard,   // left no dump, and others wait
};
[[nodiscard]] std::string_view to_string(flight_verdict what);

struct flight_finding {
  flight_verdict what{flight_verdict::agree};
  std::vector<std::uint32_t> ranks; // who is named
  std::uint32_t group{0};
  std::uint64_t sequence{0};
  std::uint64_t step{0};
  duration waited{0}; // the longest wait of another rank in that call
  std::string text;   // one line, for people
};

// `dumps` are of one generation and world, one a rank, in rank order; not empty.
[[nodiscard]] flight_finding compare_flights(std::span<const flight_dump> dumps);

} // namespace troupe
