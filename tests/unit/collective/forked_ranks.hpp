// Forked ranks: processes that a test kills, stops, or tells to abort.
#pragma once

#include <csignal>
#include <functional>
#include <thread>
#include <utility>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include <sys/wait.h>
#include <unistd.h>

#include "runtime/seams/collective.hpp"

namespace troupe::forked_ranks {

inline constexpr int ok = 0;

// A child process that runs `work` and ends with its result; killed and reaped at the latest here.
class child {
public:
  explicit child(const std::function<int()>& work)
      : pid_{::fork()} {
    if (pid_ == 0) ::_exit(work());
  }
  ~child() {
    if (pid_ < 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  child(child&& other) noexcept
      : pid_{std::exchange(other.pid_, -1)} {}
  child& operator=(child&&) = delete;
  void kill(int signal_number) const { ::kill(pid_, signal_number); }
  // Exit code, or minus the signal that killed it.
  [[nodiscard]] int wait() {
    int status = 0;
    ::waitpid(std::exchange(pid_, -1), &status, 0);
    return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
  }

private:
  pid_t pid_;
};

// Ends a member's waits once the parent says so: what a worker does when its director ends the generation.
class abort_line {
public:
  abort_line() { REQUIRE(::pipe(ends_) == 0); }
  ~abort_line() {
    ::close(ends_[0]);
    ::close(ends_[1]);
  }
  abort_line(const abort_line&) = delete;
  abort_line& operator=(const abort_line&) = delete;
  void pull(std::size_t members) {
    const std::vector<char> bytes(members);
    REQUIRE(::write(ends_[1], bytes.data(), members) == static_cast<ssize_t>(members));
  }
  [[nodiscard]] std::thread watch(communicator& member) const {
    return std::thread{[&member, end = ends_[0]] {
      char byte = 0;
      if (::read(end, &byte, 1) == 1) member.abort();
    }};
  }

private:
  int ends_[2]{};
};

} // namespace troupe::forked_ranks
