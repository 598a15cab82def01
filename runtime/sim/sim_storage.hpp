// Simulated storage: one disk a host, in memory, shared by the processes on it; it outlives them.
//
// A disk is a map of paths; `write_file` is whole and durable, as the seam promises after its flush. Faults
// are set from outside: a full disk, an error on every operation.
#pragma once

#include <map>
#include <string>

#include "runtime/seams/storage.hpp"

namespace troupe {

class sim_storage final : public storage {
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

  void set_capacity(std::uint64_t bytes) { capacity_ = bytes; }
  [[nodiscard]] std::uint64_t bytes_used() const;

private:
  struct entry {
    bool directory{false};
    std::vector<std::byte> bytes;
  };
  std::map<std::string, entry> entries_;
  std::uint64_t capacity_{~std::uint64_t{0}};
};

} // namespace troupe
