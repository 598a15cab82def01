// Memory storage: the simulated disk with a script, for crash tests: every change is recorded, any call can
// be made to fail, or to be the last one before the power goes.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "runtime/sim/sim_storage.hpp"

namespace troupe::test {

class memory_storage final : public storage {
public:
  // storage
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

  // What was called, e.g. "rename a -> b"; reads are left out.
  [[nodiscard]] const std::vector<std::string>& changes() const { return changes_; }
  void forget_changes() { changes_.clear(); }

  // Calls are counted from 0 since the last `restart_count`, reads included.
  void restart_count() { calls_ = 0; }
  [[nodiscard]] std::size_t calls() const { return calls_; }
  // Call `index` fails with `code`; a write then leaves half of its bytes.
  void fail_at(std::size_t index, errc code) { fail_at_ = {index, code}; }
  // As if the machine lost power at call `index` (a write leaves half of its bytes): it and all later calls
  // fail and change nothing more.
  void die_at(std::size_t index) { die_at_ = index; }

  [[nodiscard]] std::size_t pending() const { return disk_.pending(0); }
  // Goes back to what is durable plus the pending changes that `keep` chooses by number (0 .. pending()-1),
  // and forgets all planned failures.
  void crash(const std::function<bool(std::size_t)>& keep);
  // Makes everything durable.
  void settle();

private:
  enum class verdict : unsigned char { go, fail, die };
  [[nodiscard]] verdict next_call();
  [[nodiscard]] error planned_failure(const std::string& path) const;
  // The planned failure of this call, if it has one.
  [[nodiscard]] std::optional<error> failure_of(const std::string& path);
  void note(std::string what, bool happened);

  sim_storage disk_;
  std::vector<std::string> changes_;
  std::size_t calls_{0};
  std::optional<std::pair<std::size_t, errc>> fail_at_;
  std::optional<std::size_t> die_at_;
};

} // namespace troupe::test
