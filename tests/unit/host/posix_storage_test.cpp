#include "runtime/host/posix_storage.hpp"

#include <array>
#include <filesystem>
#include <string_view>

#include <catch2/catch_test_macros.hpp>

#include "tests/unit/host/temporary_directory.hpp"

namespace troupe {
namespace {

std::span<const std::byte> bytes(std::string_view text) {
  return std::as_bytes(std::span{text});
}

expected<void> write(storage& files, const std::string& path, std::string_view text) {
  const std::array pieces{bytes(text)};
  return files.write_file(path, pieces);
}

std::string read(storage& files, const std::string& path) {
  const auto content = files.read_file(path, 1 << 20).value();
  return {reinterpret_cast<const char*>(content.data()), content.size()};
}

TEST_CASE("posix storage: what is written in pieces reads back whole (PS-1)") {
  const temporary_directory directory;
  posix_storage files;
  const auto path = directory / "a";
  std::vector<std::span<const std::byte>> pieces;
  std::string whole;
  for (int i = 0; i < 200; ++i) {
    pieces.push_back(bytes(i % 3 == 0 ? "" : "piece;"));
    whole += i % 3 == 0 ? "" : "piece;";
  }
  REQUIRE(files.write_file(path, pieces));
  CHECK(read(files, path) == whole);
  CHECK(files.file_bytes(path).value() == whole.size());
  REQUIRE(write(files, path, "shorter"));
  CHECK(read(files, path) == "shorter");
  REQUIRE(files.write_file(path, {}));
  CHECK(files.file_bytes(path).value() == 0);
}

TEST_CASE("posix storage: read_at fills the span or says that the file is too short") {
  const temporary_directory directory;
  posix_storage files;
  const auto path = directory / "a";
  REQUIRE(write(files, path, "0123456789"));
  std::array<std::byte, 4> part{};
  REQUIRE(files.read_at(path, 3, part));
  CHECK(part[0] == std::byte{'3'});
  const auto failed = files.read_at(path, 8, part);
  REQUIRE_FALSE(failed);
  CHECK(failed.failure().code == errc::corrupt);
  CHECK(failed.failure().text.find(path) != std::string::npos);
}

TEST_CASE("posix storage: a file larger than allowed is not read") {
  const temporary_directory directory;
  posix_storage files;
  REQUIRE(write(files, directory / "a", "0123456789"));
  CHECK(files.read_file(directory / "a", 9).failure().code == errc::too_large);
  CHECK(files.read_file(directory / "a", 10));
}

TEST_CASE("posix storage: errors name the path and the system's words") {
  const temporary_directory directory;
  posix_storage files;
  const auto missing = directory / "missing";
  const auto read = files.read_file(missing, 100);
  CHECK(read.failure().code == errc::not_found);
  CHECK(read.failure().text == "cannot read '" + missing + "': No such file or directory");
  CHECK(files.list(missing).failure().code == errc::not_found);
  CHECK(files.file_bytes(missing).failure().code == errc::not_found);
  CHECK(files.sync_directory(missing).failure().code == errc::not_found);
  CHECK(files.rename(missing, directory / "b").failure().code == errc::not_found);
  REQUIRE(write(files, directory / "file", "x"));
  CHECK(files.create_directories(directory / "file/sub").failure().code == errc::storage_failed);
  CHECK(files.file_bytes(directory / "").failure().code == errc::storage_failed);
}

// Through links, so that a defect here costs a link and not the machine's device.
TEST_CASE("posix storage: no space left is storage_full; a device is never removed (PS-1)") {
  const temporary_directory directory;
  posix_storage files;
  const auto full = directory / "full";
  const auto null = directory / "null";
  std::filesystem::create_symlink("/dev/full", full);
  std::filesystem::create_symlink("/dev/null", null);
  const auto failed = write(files, full, "x");
  REQUIRE_FALSE(failed);
  CHECK(failed.failure().code == errc::storage_full);
  CHECK(failed.failure().text == "cannot write '" + full + "': No space left on device");
  CHECK(std::filesystem::is_symlink(full));
  CHECK(write(files, null, "x"));
  CHECK(std::filesystem::is_symlink(null));
}

TEST_CASE("posix storage: rename replaces, list is sorted, remove_all takes what is there (PS-2)") {
  const temporary_directory directory;
  posix_storage files;
  const auto sub = directory / "x/y";
  REQUIRE(files.create_directories(sub));
  REQUIRE(files.create_directories(sub));
  REQUIRE(write(files, sub + "/b", "new"));
  REQUIRE(write(files, sub + "/a", "old"));
  REQUIRE(write(files, sub + "/c", "third"));
  REQUIRE(files.rename(sub + "/b", sub + "/a"));
  REQUIRE(files.sync_directory(sub));
  CHECK(files.list(sub).value() == std::vector<std::string>{"a", "c"});
  CHECK(read(files, sub + "/a") == "new");
  REQUIRE(files.remove_all(directory / "x"));
  REQUIRE(files.remove_all(directory / "x"));
  CHECK(files.list(directory / "").value().empty());
}

} // namespace
} // namespace troupe
