// Directory guard: finds out at start whether checkpoints can be written, not at step 100.
//
// Runs on:  the storage executor, or `main` before anything runs.
// Fails:    errc::storage_failed, storage_full or bad_argument (all exit code 2); the text names the
//           directory and the reason. Tries instead of looking at permissions: root, read-only file systems,
//           quotas and a file where a directory should be are all found the same way.
#pragma once

#include <string>

#include "runtime/base/error.hpp"
#include "runtime/base/ids.hpp"
#include "runtime/seams/storage.hpp"

namespace troupe {

// Creates `directory` where it is missing (made durable up to its first existing ancestor), writes a probe
// file and removes it. Leaves nothing else behind.
[[nodiscard]] expected<void> prepare_checkpoint_directory(storage& files, const std::string& directory,
                                                          incarnation_id self);

} // namespace troupe
