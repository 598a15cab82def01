#include <array>
#include <csignal>
#include <string>

#include <catch2/catch_test_macros.hpp>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/chaos/process_watch.hpp"
#include "runtime/host/unique_fd.hpp"

namespace troupe::chaos {
namespace {

// A process with a mark, which answers what it is told, and ends when it is told no more.
class marked_process {
public:
  explicit marked_process(const std::string& mark) {
    std::string variable = mark_variable + ("=" + mark);
    char* variables[] = {variable.data(), nullptr};
    char name[] = "/bin/cat";
    char* arguments[] = {name, nullptr};
    std::array<int, 2> ends{};
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) == 0);
    ours_ = unique_fd{ends[0]};
    const unique_fd theirs{ends[1]};
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, theirs.get(), STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, theirs.get(), STDOUT_FILENO);
    REQUIRE(::posix_spawn(&pid_, name, &actions, nullptr, arguments, variables) == 0);
    posix_spawn_file_actions_destroy(&actions);
    char letter = 'a'; // answered once it is the program that was asked for, environment and all
    REQUIRE(::write(ours_.get(), &letter, 1) == 1);
    REQUIRE(::read(ours_.get(), &letter, 1) == 1);
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
  unique_fd ours_;
  pid_t pid_{-1};
};

TEST_CASE("process watch: only a process that carries the mark is signalled (PW-1)") {
  const auto mark = std::to_string(::getpid()) + "-test";
  const marked_process ours{mark};
  const process_watch watch{mark};
  CHECK_FALSE(watch.signal(::getpid(), SIGKILL));
  CHECK_FALSE(process_watch{mark + "0"}.signal(ours.pid(), SIGKILL));
  REQUIRE(watch.living() == std::vector{ours.pid()});
  CHECK(watch.describe_living().front().starts_with(std::to_string(ours.pid()) + " (cat) in state "));
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
