// Retention: which versions go once a new one is safe.
//
// Keeps the last `keep_last` verified-or-older versions and every version whose step is a multiple of
// `keep_every_steps`. The decision is a pure function; `apply_retention` carries it out.
//
// Runs on:  the storage executor, after a version was written.
// Fails:    a version that cannot be deleted is an error; it is tried again after the next one.
// Invariants:
//   CK-5    retention never removes the newest verified version, nor anything newer than it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "runtime/base/error.hpp"
#include "runtime/base/ids.hpp"
#include "runtime/seams/storage.hpp"

namespace troupe {

struct retention_policy {
  std::uint32_t keep_last{3};        // at least 1; 0 is read as 1
  std::uint64_t keep_every_steps{0}; // 0: none beside the last ones
};

// `present` in any order. Versions newer than `newest_verified` neither go nor count: nobody vouched for
// them.
[[nodiscard]] std::vector<step_id>
versions_to_remove(const retention_policy& policy, std::span<const step_id> present, step_id newest_verified);

// Returns the steps removed. Each is renamed before it is deleted: a crash never leaves half a version behind
// under a version's name.
[[nodiscard]] expected<std::vector<step_id>> apply_retention(storage& files, const std::string& directory,
                                                             const retention_policy& policy,
                                                             step_id newest_verified, incarnation_id by);

} // namespace troupe
