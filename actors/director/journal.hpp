// Journal: what a director leaves for its successor, beside the checkpoints.
//
// Flow:     director -> journal.json -> the next director of the same directory
// Owns:     one small file, replaced whole (written, flushed, renamed). Removed when the job is
//           over, however it ended: only a director that was killed has a successor.
// Runs on:  the storage executor.
// Fails:    a journal that cannot be read is no journal: generations then start anew, which costs nothing but
//           the memory of faults that have struck already.
#pragma once

#include <string>
#include <vector>

#include "runtime/base/error.hpp"
#include "runtime/base/ids.hpp"
#include "runtime/seams/storage.hpp"

namespace troupe {

struct journal_entry {
  job_id job;
  generation_id generation;
  std::vector<std::string> faults; // the plan, as specs
  std::string fired;               // policy's fired_faults, encoded
};

[[nodiscard]] expected<void> write_journal(storage& files, const std::string& directory,
                                           const journal_entry& entry);
// errc::not_found: there is none. errc::corrupt: not one of ours.
[[nodiscard]] expected<journal_entry> read_journal(storage& files, const std::string& directory);
[[nodiscard]] expected<void> remove_journal(storage& files, const std::string& directory);

} // namespace troupe
