// The disk that outlives its processes.
#include <csignal>

#include <array>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include <catch2/catch_test_macros.hpp>

#include "runtime/sim/sim_storage.hpp"
#include "runtime/sim/sim_world.hpp"

namespace troupe {
namespace {

expected<void> put(storage& files, const std::string& path, std::string_view first,
                   std::string_view second = "") {
  const std::array pieces{std::as_bytes(std::span{first.data(), first.size()}),
                          std::as_bytes(std::span{second.data(), second.size()})};
  return files.write_file(path, pieces);
}
std::string get(storage& files, const std::string& path) {
  const auto bytes = files.read_file(path, 1000);
  if (!bytes) return "(" + std::string{to_string(bytes.failure().code)} + ")";
  return {reinterpret_cast<const char*>(bytes->data()), bytes->size()};
}

TEST_CASE("sim storage: behaves as files do") {
  sim_storage disk;
  CHECK(put(disk, "/a/file", "x").failure().code == errc::not_found); // no such directory
  REQUIRE(disk.create_directories("/a/b"));
  REQUIRE(put(disk, "/a/b/file", "one", "two"));
  CHECK(get(disk, "/a/b/file") == "onetwo");
  CHECK(*disk.file_bytes("/a/b/file") == 6);
  CHECK(*disk.list("/") == std::vector<std::string>{"a"});
  CHECK(*disk.list("/a") == std::vector<std::string>{"b"});
  CHECK(disk.list("/c").failure().code == errc::not_found);
  REQUIRE(disk.rename("/a/b", "/a/c"));
  CHECK(get(disk, "/a/c/file") == "onetwo");
  CHECK(get(disk, "/a/b/file") != "onetwo");
  REQUIRE(disk.create_directories("/a/b"));
  CHECK_FALSE(disk.rename("/a/b", "/a/c")); // not empty
  CHECK_FALSE(disk.rename("/a/c", "/nowhere/c"));
  REQUIRE(disk.remove_all("/a/c"));
  REQUIRE(disk.remove_all("/a/c")); // absent is success
  CHECK(*disk.list("/a") == std::vector<std::string>{"b"});
  std::array<std::byte, 10> room{};
  REQUIRE(put(disk, "/a/short", "123"));
  CHECK(disk.read_at("/a/short", 0, room).failure().code == errc::corrupt);
}

TEST_CASE("sim storage: a full disk refuses, replacing needs no double room, and room helps") {
  sim_storage disk;
  disk.set_capacity(6);
  REQUIRE(put(disk, "/file", "12345"));
  CHECK(put(disk, "/other", "12").failure().code == errc::storage_full);
  CHECK(put(disk, "/file", "123456"));
  disk.set_capacity(100);
  CHECK(put(disk, "/other", "12"));
  disk.fail_changes(error{errc::storage_failed, "read-only"});
  CHECK(put(disk, "/other", "12").failure().code == errc::storage_failed);
  CHECK(get(disk, "/other") == "12");
}

TEST_CASE(
    "sim storage: a process that dies in a change leaves half a write, or nothing, and no more (SW-3)") {
  sim_world world{1};
  sim_storage disk;
  REQUIRE(disk.create_directories("/d"));
  auto& process = world.start({}, duration{0}, {});
  sim_files files{disk, process};
  REQUIRE(put(files, "/d/before", "1"));
  disk.before_change([&](sim_process& who) { world.kill(who.pid(), SIGKILL); });
  CHECK_FALSE(put(files, "/d/torn", "first", "second"));
  CHECK(get(disk, "/d/torn") == "first");
  CHECK_FALSE(put(files, "/d/after", "x"));
  CHECK_FALSE(files.rename("/d/before", "/d/renamed"));
  CHECK_FALSE(files.remove_all("/d/before"));
  CHECK(*disk.list("/d") == std::vector<std::string>{"before", "torn"});
}

} // namespace
} // namespace troupe
