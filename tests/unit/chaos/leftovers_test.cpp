#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <catch2/catch_test_macros.hpp>
#include <sys/ipc.h>
#include <sys/shm.h>
#include <unistd.h>

#include "cli/chaos/event_file.hpp"
#include "cli/chaos/leftovers.hpp"

namespace troupe::chaos {
namespace {

namespace fs = std::filesystem;

struct folder {
  folder() {
    auto name = (fs::temp_directory_path() / "troupe-leftovers-XXXXXX").string();
    REQUIRE(::mkdtemp(name.data()) != nullptr);
    path = name;
  }
  ~folder() { fs::remove_all(path); }
  fs::path path;
};

TEST_CASE("leftovers: whole versions are none, all else in a checkpoint directory is") {
  const folder here;
  fs::create_directory(here.path / "step-000000000100");
  CHECK(unfinished_in(here.path).empty());
  fs::create_directory(here.path / ".partial-step-000000000200-00112233445566778899aabbccddeeff");
  std::ofstream{here.path / "journal.json"} << "{}";
  const auto left = unfinished_in(here.path);
  REQUIRE(left.size() == 2);
  CHECK(left[0].find(".partial-step") != std::string::npos);
  CHECK(left[1].find("journal.json") != std::string::npos);
  CHECK(files_in(here.path, "temporary file").size() == 3);
}

TEST_CASE("leftovers: a segment of the run is one, another's is not") {
  const auto before = machine_now();
  const int id = ::shmget(IPC_PRIVATE, 4096, IPC_CREAT | 0600);
  REQUIRE(id >= 0);
  const auto ours = machine_leftovers(before, [](std::int64_t pid) { return pid == ::getpid(); });
  const auto others = machine_leftovers(before, [](std::int64_t) { return false; });
  ::shmctl(id, IPC_RMID, nullptr);
  const auto segment = "System V segment " + std::to_string(id);
  const auto names = [&](const std::vector<std::string>& lines) {
    for (const auto& line : lines)
      if (line.starts_with(segment)) return true;
    return false;
  };
  CHECK(names(ours));
  CHECK_FALSE(names(others));
}

TEST_CASE("event file: whole lines that are JSON objects, and nothing else") {
  const folder here;
  std::ofstream{here.path / "events"} << "{\"t\":1,\"event\":\"a\"}\nnonsense\n[1]\n{\"t\":2}\n{\"t\":3";
  const auto events = read_events(here.path / "events");
  REQUIRE(events.size() == 2);
  CHECK(word(events[0], "event") == "a");
  CHECK(word(events[0], "t").empty());
  CHECK(number(events[1], "t") == 2);
  CHECK_FALSE(number(events[1], "event"));
  CHECK(read_events(here.path / "absent").empty());
}

} // namespace
} // namespace troupe::chaos
