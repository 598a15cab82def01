// One file with given content, for readers that take a storage or a path. Nothing is written to a disk.
#pragma once

#include <string>

#include <sys/mman.h>
#include <unistd.h>

#include "runtime/seams/storage.hpp"
#include "tests/fuzz/fuzz_target.hpp"

namespace troupe::fuzz {

// Every path is this file; it can be read and replaced.
class one_file final : public storage {
public:
  explicit one_file(input content)
      : content_{bytes_of(content)} {}
  expected<std::vector<std::byte>> read_file(const std::string&, std::uint64_t bytes_max) override {
    if (content_.size() > bytes_max) return error{errc::corrupt, "too large"};
    return content_;
  }
  expected<void> read_at(const std::string&, std::uint64_t, std::span<std::byte>) override { return no(); }
  expected<std::uint64_t> file_bytes(const std::string&) override { return content_.size(); }
  expected<void> write_file(const std::string&, std::span<const std::span<const std::byte>> pieces) override {
    content_.clear();
    for (const auto piece : pieces)
      content_.insert(content_.end(), piece.begin(), piece.end());
    return {};
  }
  expected<void> create_directories(const std::string&) override { return no(); }
  expected<std::vector<std::string>> list(const std::string&) override { return no(); }
  expected<void> rename(const std::string&, const std::string&) override { return {}; }
  expected<void> sync_directory(const std::string&) override { return {}; }
  expected<void> remove_all(const std::string&) override { return no(); }
  [[nodiscard]] const bytes& content() const { return content_; }

private:
  static error no() { return {errc::storage_failed, "not here"}; }
  bytes content_;
};

// A file without a name in any directory, as long as the object lives.
class nameless_file {
public:
  explicit nameless_file(input content)
      : descriptor_{::memfd_create("troupe-fuzz", MFD_CLOEXEC)} {
    require(descriptor_ >= 0 && ::write(descriptor_, content.data(), content.size()) ==
                                    static_cast<::ssize_t>(content.size()),
            "a file in memory can be written");
  }
  ~nameless_file() { ::close(descriptor_); }
  nameless_file(const nameless_file&) = delete;
  nameless_file& operator=(const nameless_file&) = delete;
  [[nodiscard]] std::string path() const { return "/proc/self/fd/" + std::to_string(descriptor_); }

private:
  int descriptor_;
};

} // namespace troupe::fuzz
