#include "runtime/host/text_writer.hpp"

#include <fstream>
#include <iterator>
#include <latch>
#include <thread>

#include <catch2/catch_test_macros.hpp>
#include <fcntl.h>
#include <unistd.h>

#include "tests/unit/host/allocation_count.hpp"
#include "tests/unit/host/temporary_directory.hpp"

namespace troupe {
namespace {

std::string content(const std::string& path) {
  std::ifstream file{path};
  return {std::istreambuf_iterator<char>{file}, {}};
}

TEST_CASE("text writer: pieces arrive whole and in order; destruction writes them (TW-1, TW-2)") {
  const temporary_directory directory;
  std::string sent;
  {
    auto writer = text_writer::to_file(directory / "events").value().release();
    const std::unique_ptr<text_writer> owned{writer};
    for (int i = 0; i < 1000; ++i) {
      sent += "line " + std::to_string(i) + "\n";
      writer->write("line " + std::to_string(i) + "\n");
    }
    CHECK(writer->dropped() == 0);
  }
  CHECK(content(directory / "events") == sent);
}

TEST_CASE("text writer: flush returns when what came before is in the file") {
  const temporary_directory directory;
  const auto writer = text_writer::to_file(directory / "events");
  (*writer)->write("one\n");
  (*writer)->flush();
  CHECK(content(directory / "events") == "one\n");
  (*writer)->flush();
}

TEST_CASE("text writer: pieces of several threads are not mixed (TW-1)") {
  const temporary_directory directory;
  {
    const auto writer = text_writer::to_file(directory / "events");
    std::vector<std::jthread> threads;
    for (int t = 0; t < 3; ++t)
      threads.emplace_back([&writer] {
        for (int i = 0; i < 200; ++i)
          (*writer)->write("abcdefghij\n");
      });
  }
  const auto text = content(directory / "events");
  REQUIRE(text.size() == 3 * 200 * 11);
  for (std::size_t i = 0; i < text.size(); i += 11)
    REQUIRE(text.substr(i, 11) == "abcdefghij\n");
}

TEST_CASE("text writer: a file that does not read does not hold the caller up (TW-3)") {
  int ends[2] = {-1, -1};
  REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
  unique_fd reader{ends[0]};
  text_writer writer{unique_fd{ends[1]}};
  const std::string piece(64 * 1024, 'x');
  for (int i = 0; i < 32; ++i)
    writer.write(piece); // 2 MiB into a pipe of 64 KiB that nobody reads
  CHECK(writer.dropped() >= 32 - 1 - 2 * text_writer::buffered_bytes_max / piece.size());
  reader.reset(); // the write that waits fails
  writer.flush();
}

TEST_CASE("text writer: what cannot be written is counted; the path is named when it cannot be opened") {
  text_writer writer{unique_fd{::open("/dev/full", O_WRONLY | O_CLOEXEC)}};
  writer.write("one\n");
  writer.flush();
  CHECK(writer.dropped() == 1);
  const auto failed = text_writer::to_file("/no/such/directory/events");
  REQUIRE_FALSE(failed);
  CHECK(failed.failure().code == errc::bad_argument);
  CHECK(failed.failure().text == "cannot write '/no/such/directory/events': No such file or directory");
}

TEST_CASE("text writer: writing does not allocate") {
  const temporary_directory directory;
  const auto writer = text_writer::to_file(directory / "events");
  (*writer)->write("one\n");
  (*writer)->flush();
  const auto before = allocation_count();
  for (int i = 0; i < 100; ++i) {
    (*writer)->write("another line\n");
    (*writer)->flush();
  }
  CHECK(allocation_count() == before);
}

} // namespace
} // namespace troupe
