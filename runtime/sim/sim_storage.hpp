// Simulated storage: one disk in memory, shared by the processes on it; it outlives them.
//
// Files and directories are nodes, as on a real disk. A file's contents are durable when `write_file` returns
// (the seam says so); a name is durable only after `sync_directory` of its directory. Until then the change
// is pending: a process that dies loses nothing, a host that loses power loses any of its pending changes.
// Faults are set from outside: a full disk, an error on every change. A process sees the disk through
// `sim_files`, so that it can die between two changes, or in the middle of a write, and then changes nothing
// more.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/seams/storage.hpp"
#include "runtime/sim/sim_process.hpp"

namespace troupe {

class sim_storage : public storage {
public:
  static constexpr std::uint64_t no_limit = ~std::uint64_t{0};
  sim_storage();
  ~sim_storage() override;

  expected<void> create_directories(const std::string& path) override;
  expected<void> write_file(const std::string& path,
                            std::span<const std::span<const std::byte>> pieces) override;
  expected<std::vector<std::byte>> read_file(const std::string& path, std::uint64_t bytes_max) override;
  expected<void> read_at(const std::string& path, std::uint64_t offset, std::span<std::byte> into) override;
  expected<std::uint64_t> file_bytes(const std::string& path) override;
  expected<std::vector<std::string>> list(const std::string& directory) override;
  expected<void> rename(const std::string& from, const std::string& to) override; // within one directory
  expected<void> sync_directory(const std::string& path) override;
  expected<void> remove_all(const std::string& path) override;

  void set_capacity(std::uint64_t bytes) { capacity_ = bytes; }
  // Every change fails with this until it is taken away.
  void fail_changes(std::optional<error> with) { failure_ = std::move(with); }
  // Called before each change that a process makes; may end the process: then the change does not happen,
  // or, of a write, one half of it.
  void before_change(std::function<void(sim_process&)> hook) { before_change_ = std::move(hook); }
  void about_to_change(sim_process& who) {
    writer_ = who.host();
    if (before_change_) before_change_(who);
  }
  [[nodiscard]] std::uint64_t bytes_used() const;

  // Changes of `host` that a loss of its power may undo; numbered in the order in which they were made.
  [[nodiscard]] std::size_t pending(sim_host_id host) const;
  // Loss of power: of the pending changes of `host` only those that `keep` chooses by number stay.
  void lose_power(sim_host_id host, const std::function<bool(std::size_t)>& keep);

private:
  struct node;
  struct change;
  using node_ptr = std::shared_ptr<node>;

  [[nodiscard]] node_ptr find(const std::string& path) const;
  [[nodiscard]] node_ptr parent(const std::string& path) const;
  void apply(const node_ptr& directory, change what);
  void remove_tree(const node_ptr& directory, const std::string& name);

  node_ptr root_;
  std::uint64_t changes_{0};
  sim_host_id writer_{0};
  std::uint64_t capacity_{no_limit};
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
  expected<void> sync_directory(const std::string& path) override;
  expected<void> remove_all(const std::string& path) override;

private:
  [[nodiscard]] bool dies();

  sim_storage& disk_;
  sim_process& owner_;
};

} // namespace troupe
