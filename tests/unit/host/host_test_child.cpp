// The child that the tests of the process seam start. The first argument says what it does.
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/host/black_box_memory.hpp"

namespace {

// Descriptors open beyond the standard three.
int open_count() {
  int count = 0;
  for (int fd = 3; fd < 4096; ++fd)
    count += ::fcntl(fd, F_GETFD) >= 0 ? 1 : 0;
  return count;
}

bool signals_are_default() {
  sigset_t blocked;
  sigprocmask(SIG_BLOCK, nullptr, &blocked);
  struct sigaction pipe_action {};
  ::sigaction(SIGPIPE, nullptr, &pipe_action);
  return sigismember(&blocked, SIGTERM) == 0 && pipe_action.sa_handler == SIG_DFL;
}

} // namespace

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  const int number = argc > 2 ? std::atoi(argv[2]) : 0;
  if (what == "exit") return number;
  if (what == "open-count") return open_count();
  if (what == "fd-open") return ::fcntl(number, F_GETFD) >= 0 ? 1 : 0;
  if (what == "signals-default") return signals_are_default() ? 1 : 0;
  if (what == "stdin-empty") {
    char byte = 0;
    return ::read(0, &byte, 1) == 0 ? 1 : 0;
  }
  if (what == "variable") {
    const char* value = std::getenv("TROUPE_HOST_TEST");
    return value != nullptr ? std::atoi(value) : 99;
  }
  auto box = troupe::open_black_box_from_environment();
  if (!box) {
    std::fprintf(stderr, "%s\n", box.failure().text.c_str());
    return 2;
  }
  if (what == "box-then-kill") {
    (*box)->step_applied = 41;
    std::strncpy((*box)->cause.data(), "planned", (*box)->cause.size() - 1);
    ::kill(::getpid(), SIGKILL);
  }
  if (what == "wait") {
    (*box)->step_started = 1;
    for (;;)
      ::pause();
  }
  return 64;
}
