// Storage seam: files as checkpoints need them. Calls block: they are made on the storage executor only.
//
// Paths are absolute or relative to the working directory, UTF-8. Every error names the path.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "runtime/base/error.hpp"

namespace troupe {

class storage {
public:
  virtual ~storage() = default;
  virtual expected<void> create_directories(const std::string& path) = 0;
  // Writes the concatenation of `pieces` to a new file (replacing one) and flushes it to the medium.
  // errc: storage_full, storage_failed.
  virtual expected<void> write_file(const std::string& path,
                                    std::span<const std::span<const std::byte>> pieces) = 0;
  virtual expected<std::vector<std::byte>> read_file(const std::string& path, std::uint64_t bytes_max) = 0;
  // Fills `into` from `offset`; errc::corrupt when the file is shorter.
  virtual expected<void> read_at(const std::string& path, std::uint64_t offset,
                                 std::span<std::byte> into) = 0;
  virtual expected<std::uint64_t> file_bytes(const std::string& path) = 0;
  virtual expected<std::vector<std::string>> list(const std::string& directory) = 0; // names, sorted
  virtual expected<void> rename(const std::string& from, const std::string& to) = 0; // atomic
  virtual expected<void> sync_directory(const std::string& path) = 0;
  virtual expected<void> remove_all(const std::string& path) = 0; // absent is success
};

} // namespace troupe
