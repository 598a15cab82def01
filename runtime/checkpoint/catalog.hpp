// Catalog: which checkpoint versions a directory holds, and which of them can be trusted.
//
// Flow:     storage -> [catalog] -> whoever resumes, `troupe ckpt`
// Owns:     nothing; every answer is read from storage when it is asked.
// Runs on:  the storage executor.
// Fails:    a version that cannot be used is a rejection with its cause, and the next older one is tried;
//           only a directory that cannot be listed is an error. An intact manifest of another program or of a
//           newer schema ends the search: going on would lose progress or overwrite someone else's work.
// Invariants:
//   CK-4    a version counts only after its manifest, and size and digest of each of its files, were checked.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "runtime/base/error.hpp"
#include "runtime/base/ids.hpp"
#include "runtime/checkpoint/manifest.hpp"
#include "runtime/seams/storage.hpp"

namespace troupe {

struct version_entry {
  step_id step;
  std::string path;
};

struct version_rejection {
  step_id step;
  std::string path;
  error cause;
};

struct verified_version {
  step_id step;
  std::string path;
  troupe::manifest manifest;
};

struct catalog_listing {
  std::vector<version_entry> versions; // by step, oldest first; nothing was verified
  std::vector<std::string> unfinished; // paths of what crashes left behind
  std::vector<std::string> abandoned;  // paths, see abandon_after
};

struct version_search {
  std::optional<verified_version> found;
  std::vector<version_rejection> rejected; // newest first
  std::optional<error> refused;            // wrong_program, wrong_version: the caller shall stop
};

// The manifest of the version at `path`. errc::not_found where there is none: the version is incomplete.
[[nodiscard]] expected<manifest> read_manifest(storage& files, const std::string& path);
// Reads every file of the version and compares size and digest. errc::corrupt names the first bad file.
[[nodiscard]] expected<void> verify_files(storage& files, const std::string& path, const manifest& version);
[[nodiscard]] expected<void> verify_file(storage& files, const std::string& path, std::uint64_t bytes,
                                         const std::string& digest);

class catalog {
public:
  catalog(storage& files, std::string directory); // `files` outlives the catalog

  [[nodiscard]] const std::string& directory() const { return directory_; }
  // A directory that does not exist holds no versions.
  [[nodiscard]] expected<catalog_listing> list() const;
  // Manifest and files, whatever program they belong to.
  [[nodiscard]] expected<verified_version> verify(const version_entry& entry) const;
  [[nodiscard]] expected<version_search> newest_verified(const state_layout& layout) const;
  // errc::not_found, or why that version cannot be used.
  [[nodiscard]] expected<verified_version> version_at(step_id step, const state_layout& layout) const;

  // Deletes what crashes left behind, and puts a version back whose replacement never arrived. Only while no
  // writer runs.
  [[nodiscard]] expected<void> clean_unfinished() const;
  // Sets the versions newer than `step` aside (renames, deletes nothing), so that a job that was told to
  // resume from `step` never meets the future of another timeline. Returns their new paths.
  [[nodiscard]] expected<std::vector<std::string>> abandon_after(step_id step, incarnation_id by) const;

private:
  struct found_name;
  [[nodiscard]] expected<std::vector<found_name>> scan() const;
  [[nodiscard]] static std::set<step_id> whole_steps(const std::vector<found_name>& found);

  storage& files_;
  std::string directory_;
};

} // namespace troupe
