// Flight dump: what a rank's flight ring held when something failed, as one file of JSON lines.
//
//   flight-GENERATION-RANK.jsonl
//     {"flight":1,"generation":3,"rank":1,"world":2,"by":"worker","cause":"...", ...}   who, when, why
//     {"id":41,"group":0,"kind":"collective","sequence":41,"call":"sum", ...}          a record a line
//
// Flow:     flight ring, what its process knows of itself -> to_text -> storage -> parse -> comparison
// Runs on:  the storage executor of whoever writes it; no device is touched.
// Fails:    parse: errc::corrupt says which line does not fit; wrong_version: written by a newer build.
// Invariants:
//   DU-1    of a file that was cut off or damaged, what stands before the damage is read, and that it is not
//           whole is known: nobody is blamed for a record that was lost.
//   DU-2    reading is bounded: bytes, lines, ranks, groups.
//   DU-3    a directory keeps the dumps of the newest `flight_generations_kept` generations.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/error.hpp"
#include "runtime/base/ids.hpp"
#include "runtime/base/time.hpp"
#include "runtime/seams/flight_ring.hpp"
#include "runtime/seams/storage.hpp"
#include "runtime/telemetry/flight_recorder.hpp"

namespace troupe {

inline constexpr std::size_t flight_file_bytes_max = 4U << 20;
inline constexpr std::size_t flight_files_max = 8192; // looked at in a directory
inline constexpr std::size_t flight_text_bytes_max = 512;
inline constexpr std::uint64_t flight_generations_kept = 8;

enum class flight_writer : std::uint8_t {
  worker,   // the rank itself, when it survived
  failed,   // the rank itself, when its own step failed
  director, // of a rank that has ended, from its black box
  asked,    // the director of a rank that lives, because somebody asked
};
[[nodiscard]] std::string_view to_string(flight_writer by);

struct flight_header {
  generation_id generation;
  rank_id rank;
  std::uint32_t world{1};
  flight_writer by{flight_writer::worker};
  std::string cause; // why the dump was written; of an ended rank, why it ended
  time_point now;    // of the dump, by the rank's clock
  step_id step_started, step_applied;
  std::vector<std::uint64_t> arrivals; // communicator::arrivals; empty: cannot tell
  std::vector<flight_group> groups;
  // Calls of the process before the first record, where some of this generation may be among them: the ring
  // had overwritten them.
  std::uint64_t before{0};

  // It is known of this rank that it could not go on.
  [[nodiscard]] bool ended() const { return by == flight_writer::director || by == flight_writer::failed; }
};

struct flight_dump {
  flight_header about;
  std::vector<flight_record> records; // of the header's generation, oldest first
  std::string damage;                 // what of the file could not be read; empty: it is whole
};

// The records of `about.generation`; sets `before`.
[[nodiscard]] flight_dump make_flight_dump(flight_header about, const flight_ring& ring);
[[nodiscard]] std::string to_text(const flight_dump& dump);
[[nodiscard]] expected<flight_dump> parse_flight_dump(std::string_view text);

[[nodiscard]] std::string flight_file_name(generation_id generation, rank_id rank);
struct flight_file {
  generation_id generation;
  rank_id rank;
};
[[nodiscard]] std::optional<flight_file> parse_flight_file_name(std::string_view name);

// Blocking. Writes the file, and removes those of generations that are too old (DU-3).
[[nodiscard]] expected<void> write_flight_dump(storage& files, const std::string& directory,
                                               const flight_dump& dump);
// Removes every dump: a directory belongs to one run. Makes the directory if it is not there.
[[nodiscard]] expected<void> clear_flight_directory(storage& files, const std::string& directory);

} // namespace troupe
