// `troupe flight DIR`: reads the flight dumps of a job and says where its ranks first did not agree. Reads
// only.
//
//   one line a generation on `out`, with `steps` followed by one a step and rank; a line on `err` for each
//   file that could not be used, or not whole
//
// Exit codes: 0 the ranks agree, 1 they do not, 2 usage (no such directory, no dumps in it), 5 a dump could
// not be read whole and those that could show no difference.
// With `json`, one object on `out` and nothing else there.
#pragma once

#include <iosfwd>
#include <map>
#include <string>
#include <vector>

#include "runtime/seams/storage.hpp"
#include "runtime/telemetry/flight_dump.hpp"

namespace CLI {
class App;
}

namespace troupe {

struct flight_options {
  std::string directory;
  bool json{false};
  std::uint32_t steps{0}; // of each rank, the newest so many whose sums began during backward: when, how long
};

// What a directory holds.
struct flight_files {
  struct note {
    std::string file, text;
    bool damage{false}; // it was to be a dump; else a file that is none of ours
  };
  std::map<generation_id, std::vector<flight_dump>> dumps; // of one world each, in rank order
  std::vector<note> notes;
};
// Blocks on storage. errc::not_found, bad_argument: no directory that can be looked at.
[[nodiscard]] expected<flight_files> read_flight_files(storage& files, const std::string& directory);

// Adds `flight` to `parent`. `into` outlives the parse.
CLI::App* register_flight(CLI::App& parent, flight_options& into);
// Blocks on storage. Returns the exit code.
[[nodiscard]] int run_flight(storage& files, const flight_options& options, std::ostream& out,
                             std::ostream& err);

} // namespace troupe
