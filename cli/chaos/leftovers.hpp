// Leftovers: what a run may have left on the machine once all its processes have ended.
//
// Flow:     before the run -> `machine_state` -> after it -> one line a leftover
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <set>
#include <string>
#include <vector>

namespace troupe::chaos {

struct machine_state {
  std::set<std::string> shared_memory; // names in /dev/shm
  std::set<std::int64_t> segments;     // System V shared memory, ids
};
[[nodiscard]] machine_state machine_now();

// What is there now and was not before. An entry of /dev/shm that a living process maps is that process's; a
// segment counts where one of the run's processes created it.
[[nodiscard]] std::vector<std::string>
machine_leftovers(const machine_state& before, const std::function<bool(std::int64_t pid)>& of_the_run);
// Everything in a folder that should be empty.
[[nodiscard]] std::vector<std::string> files_in(const std::filesystem::path& folder, const std::string& what);
// What is no whole version: parts of one that was being written, a journal.
[[nodiscard]] std::vector<std::string> unfinished_in(const std::filesystem::path& checkpoints);

} // namespace troupe::chaos
