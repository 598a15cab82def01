// POSIX storage: the storage seam on the file system. Calls block; the storage thread makes them.
//
// Fails:    every error says what was tried on which path, and the system's words; no space left (or a
//           spent quota) is errc::storage_full, a missing file errc::not_found, a file that is shorter than
//           asked errc::corrupt, one that is longer than allowed errc::too_large.
// Invariants:
//   PS-1    when `write_file` succeeds the bytes are on the medium; when it fails, no file is left there.
//           (What is not a regular file, such as /dev/stdout, is written and otherwise left alone.)
//   PS-2    `rename` replaces its target whole; `sync_directory` makes it last.
#pragma once

#include "runtime/seams/storage.hpp"

namespace troupe {

class posix_storage final : public storage {
public:
  expected<void> create_directories(const std::string& path) override;
  expected<void> write_file(const std::string& path,
                            std::span<const std::span<const std::byte>> pieces) override;
  expected<std::vector<std::byte>> read_file(const std::string& path, std::uint64_t bytes_max) override;
  expected<void> read_at(const std::string& path, std::uint64_t offset, std::span<std::byte> into) override;
  expected<std::uint64_t> file_bytes(const std::string& path) override;
  expected<std::vector<std::string>> list(const std::string& directory) override;
  expected<void> rename(const std::string& from, const std::string& to) override;
  expected<void> sync_directory(const std::string& path) override;
  expected<void> remove_all(const std::string& path) override;
};

} // namespace troupe
