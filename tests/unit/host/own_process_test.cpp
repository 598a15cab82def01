#include <csignal>

#include <catch2/catch_test_macros.hpp>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/host/host_own_process.hpp"
#include "runtime/host/orphan_reaper.hpp"
#include "runtime/host/unique_fd.hpp"

namespace troupe {
namespace {

TEST_CASE("own process: its counters count up; allocations only in programs built for it") {
  const host_own_process self;
  const auto before = self.counters();
  const auto bytes = static_cast<std::size_t>(::getpagesize()) * 64;
  void* fresh = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  REQUIRE(fresh != MAP_FAILED);
  ::madvise(fresh, bytes, MADV_NOHUGEPAGE);
  for (std::size_t at = 0; at < bytes; at += static_cast<std::size_t>(::getpagesize()))
    static_cast<volatile char*>(fresh)[at] = 1;
  const auto after = self.counters();
  ::munmap(fresh, bytes);
  CHECK(after.page_faults >= before.page_faults + 64);
  CHECK(after.cpu >= before.cpu);
  CHECK_FALSE(after.counts_allocations);
}

// A child that starts another, says its id, and ends: the other is an orphan, and ours.
pid_t leave_an_orphan() {
  int ends[2]{};
  REQUIRE(::pipe(ends) == 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const pid_t orphan = ::fork();
    if (orphan == 0) {
      ::signal(SIGTERM, SIG_IGN);
      for (;;)
        ::pause();
    }
    (void)!::write(ends[1], &orphan, sizeof orphan);
    ::_exit(0);
  }
  pid_t orphan = 0;
  const unique_fd read_end{ends[0]};
  const unique_fd write_end{ends[1]};
  REQUIRE(::read(read_end.get(), &orphan, sizeof orphan) == sizeof orphan);
  REQUIRE(::waitpid(child, nullptr, 0) == child);
  return orphan;
}

TEST_CASE("orphan reaper: what a child leaves behind becomes ours, and is ended and reaped (OR-1)") {
  orphan_reaper reaper;
  const auto orphan = leave_an_orphan();
  CHECK(reaper.sweep(0) == 1);
  CHECK(::kill(orphan, 0) == 0);
  while (reaper.sweep(SIGKILL) != 0) {
  }
  CHECK(::kill(orphan, 0) != 0);
  CHECK(errno == ESRCH);
}

} // namespace
} // namespace troupe
