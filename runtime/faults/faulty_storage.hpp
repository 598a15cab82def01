// Faulty storage: files that cannot be written, or half, as the switches say.
//
// Flow:     checkpointer -> [faulty storage] -> the storage
// Runs on:  the storage executor, as every storage.
// Fails:    errc::storage_full while the disk is full; a torn write does not return: the process dies in it.
#pragma once

#include "runtime/faults/fault_switches.hpp"
#include "runtime/seams/own_process.hpp"
#include "runtime/seams/storage.hpp"

namespace troupe {

class faulty_storage final : public storage {
public:
  faulty_storage(storage& inner, own_process& self, fault_switches& switches)
      : inner_{inner}
      , self_{self}
      , switches_{switches} {}

  expected<void> create_directories(const std::string& path) override {
    return inner_.create_directories(path);
  }
  expected<void> write_file(const std::string& path,
                            std::span<const std::span<const std::byte>> pieces) override;
  expected<std::vector<std::byte>> read_file(const std::string& path, std::uint64_t bytes_max) override {
    return inner_.read_file(path, bytes_max);
  }
  expected<void> read_at(const std::string& path, std::uint64_t offset, std::span<std::byte> into) override {
    return inner_.read_at(path, offset, into);
  }
  expected<std::uint64_t> file_bytes(const std::string& path) override { return inner_.file_bytes(path); }
  expected<std::vector<std::string>> list(const std::string& directory) override {
    return inner_.list(directory);
  }
  expected<void> rename(const std::string& from, const std::string& to) override {
    return inner_.rename(from, to);
  }
  expected<void> sync_directory(const std::string& path) override { return inner_.sync_directory(path); }
  expected<void> remove_all(const std::string& path) override { return inner_.remove_all(path); }

private:
  expected<void> tear(const std::string& path, std::span<const std::span<const std::byte>> pieces);
  storage& inner_;
  own_process& self_;
  fault_switches& switches_;
};

} // namespace troupe
