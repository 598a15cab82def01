// Checkpoint writer: turns a snapshot of the state into one version on storage.
//
// Flow:     snapshot -> [writer] -> DIRECTORY/step-000000000200/{*.safetensors, manifest.json}
// Owns:     nothing between calls; the snapshot's lease until it is written.
// Runs on:  the storage executor.
// Fails:    whatever storage reports (errc::storage_full, storage_failed), errc::corrupt where the bytes read
//           back are not those written. The partial version is removed; older versions are untouched.
// Order:    each shard file (flushed) -> read back -> manifest (flushed, renamed) -> flush its directory
//           -> [former version of the same step aside] -> rename into place -> flush the parent -> retention.
// Invariants:
//   CK-1    a version appears under its name only when whole.
//   CK-2    whatever fails or crashes on the way, what was loadable before stays loadable, or the new one is.
// Why:      docs/design/0005-checkpoint-format.md
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/base/error.hpp"
#include "runtime/base/ids.hpp"
#include "runtime/base/task.hpp"
#include "runtime/checkpoint/layout.hpp"
#include "runtime/checkpoint/limits.hpp"
#include "runtime/checkpoint/manifest.hpp"
#include "runtime/checkpoint/retention.hpp"
#include "runtime/checkpoint/snapshot_slots.hpp"
#include "runtime/seams/executor.hpp"
#include "runtime/seams/storage.hpp"

namespace troupe {

struct writer_settings {
  std::string directory; // see prepare_checkpoint_directory
  state_layout layout;   // valid (see `validate`)
  incarnation_id self;
  std::uint64_t shard_bytes_max{limits::shard_bytes_default}; // a larger tensor gets a file of its own
  bool read_back{true};                                       // verify each file before the version counts
  retention_policy retention;
};

struct written_version {
  step_id step;
  std::string path;
  std::uint64_t bytes{0}; // shard files and manifest
  std::size_t files{0};   // shard files
  std::vector<step_id> removed;
  std::optional<error> retention_failure; // the version itself is safe
};

class checkpoint_writer {
public:
  checkpoint_writer(storage& files, writer_settings settings); // `files` outlives the writer

  // `state` is at least layout.state_bytes() long and does not change during the call. Blocks on storage.
  [[nodiscard]] expected<written_version> write(const checkpoint_metadata& metadata,
                                                std::span<const std::byte> state);
  [[nodiscard]] const writer_settings& settings() const { return settings_; }

private:
  struct shard_plan;
  struct staged_version {
    std::size_t files{0};
    std::uint64_t bytes{0};
  };
  [[nodiscard]] std::vector<shard_plan> plan() const;
  [[nodiscard]] expected<manifest_file> write_shard(const std::string& directory, const shard_plan& shard,
                                                    step_id step, std::span<const std::byte> state);
  [[nodiscard]] expected<staged_version>
  stage(const std::string& partial, const checkpoint_metadata& metadata, std::span<const std::byte> state);
  [[nodiscard]] expected<std::uint64_t> write_manifest(const std::string& partial, const manifest& version);
  [[nodiscard]] expected<void> publish(const std::string& partial, step_id step);
  [[nodiscard]] expected<void> discard(const std::string& retired, step_id step);

  storage& files_;
  writer_settings settings_;
};

using write_done = inline_function<void(expected<written_version>), 64>;

// Writes on `storage_thread`, frees the slot there, then calls `done` on `reply_on`. Once each.
void write_async(executor& storage_thread, executor& reply_on, std::shared_ptr<checkpoint_writer> writer,
                 snapshot what, write_done done);

} // namespace troupe
