#include "runtime/host/orphan_reaper.hpp"

#include <charconv>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace troupe {
namespace {

// "PID (NAME) STATE PARENT ..."; the name may hold anything.
pid_t parent_of(const std::string& stat) {
  const auto name_end = stat.rfind(')');
  if (name_end == std::string::npos || stat.size() < name_end + 4) return 0;
  pid_t parent = 0;
  std::from_chars(stat.data() + name_end + 4, stat.data() + stat.size(), parent);
  return parent;
}

std::vector<pid_t> children() {
  std::vector<pid_t> found;
  const auto self = ::getpid();
  std::error_code failed;
  for (const auto& entry : std::filesystem::directory_iterator{"/proc", failed}) {
    const auto name = entry.path().filename().string();
    pid_t pid = 0;
    const auto parsed = std::from_chars(name.data(), name.data() + name.size(), pid);
    if (parsed.ec != std::errc{} || parsed.ptr != name.data() + name.size()) continue;
    std::ifstream file{entry.path() / "stat"};
    std::string line;
    if (std::getline(file, line) && parent_of(line) == self) found.push_back(pid);
  }
  return found;
}

} // namespace

orphan_reaper::orphan_reaper() {
  ::prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
}

orphan_reaper::~orphan_reaper() {
  ::prctl(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0);
}

std::size_t orphan_reaper::sweep(int signal_number) {
  while (::waitpid(-1, nullptr, WNOHANG) > 0) {
  }
  const auto alive = children();
  for (const auto pid : alive)
    ::kill(pid, signal_number); // not reaped, so the id is theirs (OR-1)
  return alive.size();
}

} // namespace troupe
