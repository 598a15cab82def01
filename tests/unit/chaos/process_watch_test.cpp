#include <csignal>
#include <string>

#include <catch2/catch_test_macros.hpp>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/chaos/process_watch.hpp"

namespace troupe::chaos {
namespace {

// A process with a mark, which waits for its end.
class marked_process {
public:
  explicit marked_process(const std::string& mark) {
    std::string variable = mark_variable + ("=" + mark);
    char* variables[] = {variable.data(), nullptr};
    char name[] = "/usr/bin/tail";
    char option[] = "-f";
    char file[] = "/dev/null";
    char* arguments[] = {name, option, file, nullptr};
    REQUIRE(::posix_spawn(&pid_, name, nullptr, nullptr, arguments, variables) == 0);
  }
  ~marked_process() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  [[nodiscard]] std::int64_t pid() const { return pid_; }
  // The signal that ended it.
  [[nodiscard]] int wait_for_end() const {
    siginfo_t info{};
    ::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOWAIT);
    return info.si_status;
  }

private:
  pid_t pid_{-1};
};

TEST_CASE("process watch: only a process that carries the mark is signalled (PW-1)") {
  const auto mark = std::to_string(::getpid()) + "-test";
  const marked_process ours{mark};
  const process_watch watch{mark};
  CHECK_FALSE(watch.signal(::getpid(), SIGKILL));
  CHECK_FALSE(process_watch{mark + "0"}.signal(ours.pid(), SIGKILL));
  CHECK(watch.living() == std::vector{ours.pid()});
  CHECK(watch.describe_living().front().starts_with(std::to_string(ours.pid()) + " (tail) in state "));
  CHECK(watch.signal(ours.pid(), SIGTERM));
  CHECK(ours.wait_for_end() == SIGTERM);
  CHECK(watch.living().empty()); // also before it is reaped
}

TEST_CASE("process watch: what a process holds is the median of its last samples, and its most") {
  const auto mark = std::to_string(::getpid()) + "-held";
  const marked_process ours{mark};
  process_watch watch{mark};
  watch.sample();
  CHECK(watch.seen(ours.pid()));
  CHECK(watch.at_end().empty()); // it has not lived long enough
  CHECK(watch.at_most().at(ours.pid()).descriptors >= 3);
  for (int i = 0; i < 20; ++i)
    watch.sample();
  const auto held = watch.at_end().at(ours.pid());
  CHECK(held.descriptors >= 3);
  CHECK(held.resident_bytes > 0);
  CHECK(held.descriptors <= watch.at_most().at(ours.pid()).descriptors);
}

} // namespace
} // namespace troupe::chaos
