// Simulated storage: one disk a host, in memory, shared by the processes on it; it outlives them.
//
// A disk is a map of paths; `write_file` is whole and durable, as the seam promises after its flush. Faults
// are set from outside: a full disk, an error on every change. A process sees the disk through `sim_files`,
// so that it can die between two changes, or in the middle of a write, and then changes nothing more.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>

#include "runtime/seams/storage.hpp"
#include "runtime/sim/sim_process.hpp"

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
  // Every change fails with this until it is taken away.
  void fail_changes(std::optional<error> with) { failure_ = std::move(with); }
  // Called before each change that a process makes; may end the process: then the change does not happen,
  // or, of a write, one half of it.
  void before_change(std::function<void(sim_process&)> hook) { before_change_ = std::move(hook); }
  void about_to_change(sim_process& who) const {
    if (before_change_) before_change_(who);
  }
  [[nodiscard]] std::uint64_t bytes_used() const;

private:
  struct entry {
    bool directory{false};
    std::vector<std::byte> bytes;
  };
  std::map<std::string, entry> entries_{{"/", {true, {}}}};
  std::uint64_t capacity_{~std::uint64_t{0}};
  std::optional<error> failure_;
  std::function<void(sim_process&)> before_change_;
};

// One process's view of the disk.
class sim_files final : public storage {
public:
  sim_files(sim_storage& disk, sim_process& owner)
      : disk_{disk}
      , owner_{owner} {}
  expected<void> create_directories(const std::string& path) override;
  expected<void> write_file(const std::string& path,
                            std::span<const std::span<const std::byte>> pieces) override;
  expected<std::vector<std::byte>> read_file(const std::string& path, std::uint64_t bytes_max) override {
    return disk_.read_file(path, bytes_max);
  }
  expected<void> read_at(const std::string& path, std::uint64_t offset, std::span<std::byte> into) override {
    return disk_.read_at(path, offset, into);
  }
  expected<std::uint64_t> file_bytes(const std::string& path) override { return disk_.file_bytes(path); }
  expected<std::vector<std::string>> list(const std::string& directory) override {
    return disk_.list(directory);
  }
  expected<void> rename(const std::string& from, const std::string& to) override;
  expected<void> sync_directory(const std::string& path) override { return disk_.sync_directory(path); }
  expected<void> remove_all(const std::string& path) override;

private:
  [[nodiscard]] bool dies();

  sim_storage& disk_;
  sim_process& owner_;
};

} // namespace troupe
