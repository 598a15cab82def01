#include "runtime/host/host_process.hpp"

#include <csignal>
#include <cstdlib>
#include <optional>

#include <catch2/catch_test_macros.hpp>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/host/black_box_memory.hpp"
#include "runtime/host/event_loop.hpp"
#include "runtime/host/unique_fd.hpp"

namespace troupe {
namespace {

using namespace std::chrono_literals;

process_spec child_that(std::vector<std::string> arguments) {
  return {HOST_TEST_CHILD, std::move(arguments), {}, {}};
}

// Runs one child to its end.
process_exit run(const process_spec& spec) {
  event_loop loop;
  host_process processes{loop};
  std::optional<process_exit> seen;
  const auto child = processes.start(spec, [&](const process_exit& how) { seen = how; });
  REQUIRE(child);
  REQUIRE(loop.run_until([&] { return seen.has_value(); }, 30s));
  CHECK(seen->pid == child->pid);
  return *seen;
}

TEST_CASE("host process: an exit code arrives with the pid that had it (HP-1)") {
  const auto how = run(child_that({"exit", "7"}));
  CHECK_FALSE(how.signalled);
  CHECK(how.code == 7);
  CHECK(how.text() == "exit code 7");
}

TEST_CASE("host process: a signal is named, and the child is reaped before its handler runs (HP-1)") {
  event_loop loop;
  host_process processes{loop};
  std::optional<process_exit> seen;
  bool reaped = false;
  const auto child = processes.start(child_that({"wait"}), [&](const process_exit& how) {
    seen = how;
    reaped = ::kill(static_cast<pid_t>(how.pid), 0) != 0 && errno == ESRCH;
  });
  REQUIRE(child);
  REQUIRE(processes.signal(child->pid, SIGKILL));
  REQUIRE(loop.run_until([&] { return seen.has_value(); }, 30s));
  CHECK(reaped);
  CHECK(seen->text() == "killed by SIGKILL");
  CHECK(processes.running() == 0);
}

TEST_CASE("host process: what a killed child wrote into its black box is still there") {
  event_loop loop;
  host_process processes{loop};
  bool ended = false;
  const auto child =
      processes.start(child_that({"box-then-kill"}), [&](const process_exit&) { ended = true; });
  REQUIRE(child);
  REQUIRE(loop.run_until([&] { return ended; }, 30s));
  CHECK(child->box->step_applied == 41);
  CHECK(std::string{child->box->cause.data()} == "planned");
}

TEST_CASE("host process: only children that have not been reaped are signalled (HP-2)") {
  event_loop loop;
  host_process processes{loop};
  CHECK(processes.signal(::getpid(), 0).failure().code == errc::not_found);
  bool ended = false;
  const auto child = processes.start(child_that({"exit", "0"}), [&](const process_exit&) { ended = true; });
  REQUIRE(loop.run_until([&] { return ended; }, 30s));
  CHECK(processes.signal(child->pid, SIGTERM).failure().code == errc::not_found);
}

TEST_CASE("host process: destruction kills and reaps what still runs, without a handler (HP-3)") {
  event_loop loop;
  std::int64_t pid = 0;
  {
    host_process processes{loop};
    const auto child = processes.start(child_that({"wait"}), [](const process_exit&) { FAIL("called"); });
    REQUIRE(child);
    pid = child->pid;
  }
  CHECK(::kill(static_cast<pid_t>(pid), 0) != 0);
  CHECK(::waitpid(-1, nullptr, WNOHANG) == -1);
  bool later = false;
  loop.post([&] { later = true; });
  CHECK(loop.run_until([&] { return later; }, 10s));
}

TEST_CASE("host process: a child has the descriptors its spec names and no other (HP-4)") {
  const unique_fd leaky{::open("/dev/null", O_RDONLY)}; // without close-on-exec, as some libraries do
  const unique_fd kept{::fcntl(leaky.get(), F_DUPFD_CLOEXEC, 40)};
  const unique_fd leaky_above{::fcntl(leaky.get(), F_DUPFD, 60)};
  auto spec = child_that({"open-count"});
  CHECK(run(spec).code == 1); // its black box
  spec.inherited_fds = {kept.get()};
  CHECK(run(spec).code == 2);
  spec.arguments = {"fd-open", std::to_string(kept.get())};
  CHECK(run(spec).code == 1);
  spec.arguments = {"fd-open", std::to_string(leaky.get())};
  CHECK(run(spec).code == 0);
  spec.inherited_fds = {1};
  event_loop loop;
  host_process processes{loop};
  CHECK(processes.start(spec, {}).failure().code == errc::bad_argument);
}

TEST_CASE("host process: variables are added to the parent's and replace them") {
  ::setenv("TROUPE_HOST_TEST", "1", 1);
  auto spec = child_that({"variable"});
  CHECK(run(spec).code == 1);
  spec.environment = {"TROUPE_HOST_TEST=5", "TROUPE_HOST=7"};
  CHECK(run(spec).code == 5);
  ::unsetenv("TROUPE_HOST_TEST");
}

TEST_CASE("host process: a child starts with default signals and an empty standard input") {
  sigset_t terminate;
  sigset_t before;
  sigemptyset(&terminate);
  sigaddset(&terminate, SIGTERM);
  sigprocmask(SIG_BLOCK, &terminate, &before);
  const auto pipe_before = std::signal(SIGPIPE, SIG_IGN);
  CHECK(run(child_that({"signals-default"})).code == 1);
  std::signal(SIGPIPE, pipe_before);
  sigprocmask(SIG_SETMASK, &before, nullptr);
  CHECK(run(child_that({"stdin-empty"})).code == 1);
}

TEST_CASE("host process: a program that is not there is named") {
  event_loop loop;
  host_process processes{loop};
  const auto child = processes.start({"/no/such/program", {}, {}, {}}, {});
  REQUIRE_FALSE(child);
  CHECK(child.failure().code == errc::not_found);
  CHECK(child.failure().text == "cannot start '/no/such/program': No such file or directory");
  CHECK(processes.running() == 0);
}

TEST_CASE("host process: where SIGCHLD is ignored nothing is started, and the error says why") {
  const auto before = std::signal(SIGCHLD, SIG_IGN);
  event_loop loop;
  host_process processes{loop};
  const auto child = processes.start(child_that({"exit", "0"}), {});
  std::signal(SIGCHLD, before);
  REQUIRE_FALSE(child);
  CHECK(child.failure().text.find("SIGCHLD") != std::string::npos);
}

TEST_CASE("black box: a process without a parent's box has a private one; a wrong number is refused") {
  ::unsetenv(black_box_variable);
  REQUIRE(open_black_box_from_environment());
  const unique_fd other{::open("/dev/null", O_RDONLY)};
  for (const auto& wrong :
       {std::string{"x"}, std::string{"-1"}, std::string{"1"}, std::to_string(other.get())}) {
    ::setenv(black_box_variable, wrong.c_str(), 1);
    CHECK(open_black_box_from_environment().failure().code == errc::bad_argument);
  }
  ::unsetenv(black_box_variable);
}

} // namespace
} // namespace troupe
