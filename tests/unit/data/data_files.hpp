// Files of the data room's tests: a temporary directory, IDX writers, and a storage seam that reads the disk.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <string>
#include <system_error>
#include <vector>

#include <stdlib.h>
#include <zlib.h>

#include "runtime/base/invariant.hpp"
#include "runtime/seams/storage.hpp"

namespace troupe::data_test {

class temporary_directory {
public:
  temporary_directory() {
    auto pattern = (std::filesystem::temp_directory_path() / "troupe-data-XXXXXX").string();
    invariant(::mkdtemp(pattern.data()) != nullptr, "test: a temporary directory can be made");
    path_ = pattern;
  }
  ~temporary_directory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  temporary_directory(const temporary_directory&) = delete;
  temporary_directory& operator=(const temporary_directory&) = delete;
  [[nodiscard]] std::string file(const std::string& name) const { return (path_ / name).string(); }

private:
  std::filesystem::path path_;
};

using byte_string = std::vector<std::uint8_t>;

inline byte_string idx_bytes(std::uint32_t magic, std::initializer_list<std::uint32_t> sizes,
                             const byte_string& payload) {
  byte_string bytes;
  const auto append = [&bytes](std::uint32_t value) {
    for (int shift = 24; shift >= 0; shift -= 8)
      bytes.push_back(static_cast<std::uint8_t>(value >> shift));
  };
  append(magic);
  for (const auto size : sizes)
    append(size);
  bytes.insert(bytes.end(), payload.begin(), payload.end());
  return bytes;
}

inline byte_string gzip(const byte_string& bytes) {
  z_stream deflater{};
  invariant(::deflateInit2(&deflater, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) == Z_OK,
            "test: deflate");
  byte_string result(::deflateBound(&deflater, bytes.size()) + 64);
  deflater.next_in = const_cast<Bytef*>(bytes.data());
  deflater.avail_in = static_cast<uInt>(bytes.size());
  deflater.next_out = result.data();
  deflater.avail_out = static_cast<uInt>(result.size());
  invariant(::deflate(&deflater, Z_FINISH) == Z_STREAM_END, "test: deflate");
  result.resize(deflater.total_out);
  ::deflateEnd(&deflater);
  return result;
}

inline void write(const std::string& path, const byte_string& bytes) {
  std::ofstream file{path, std::ios::binary};
  file.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
}

// Reads only: what the data room needs of the storage seam.
class disk_files final : public storage {
public:
  expected<void> read_at(const std::string& path, std::uint64_t offset, std::span<std::byte> into) override {
    std::ifstream file{path, std::ios::binary};
    file.seekg(static_cast<std::streamoff>(offset));
    file.read(reinterpret_cast<char*>(into.data()), static_cast<std::streamsize>(into.size()));
    if (!file) return error{errc::corrupt, path + ": shorter than asked for"};
    return {};
  }
  expected<std::uint64_t> file_bytes(const std::string& path) override {
    std::error_code failure;
    const auto bytes = std::filesystem::file_size(path, failure);
    if (failure) return error{errc::not_found, path + ": " + failure.message()};
    return std::uint64_t{bytes};
  }
  expected<void> create_directories(const std::string&) override { return unused(); }
  expected<void> write_file(const std::string&, std::span<const std::span<const std::byte>>) override {
    return unused();
  }
  expected<std::vector<std::byte>> read_file(const std::string&, std::uint64_t) override { return unused(); }
  expected<std::vector<std::string>> list(const std::string&) override { return unused(); }
  expected<void> rename(const std::string&, const std::string&) override { return unused(); }
  expected<void> sync_directory(const std::string&) override { return unused(); }
  expected<void> remove_all(const std::string&) override { return unused(); }

private:
  static error unused() { return {errc::storage_failed, "not offered by this test"}; }
};

} // namespace troupe::data_test
