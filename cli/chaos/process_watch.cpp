#include "cli/chaos/process_watch.hpp"

#include <algorithm>
#include <charconv>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>

#include <sys/syscall.h>
#include <unistd.h>

#include "runtime/host/unique_fd.hpp"

namespace troupe::chaos {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t samples_kept = 11; // two seconds

fs::path proc(std::int64_t pid) {
  return fs::path{"/proc"} / std::to_string(pid);
}

std::string text_of(const fs::path& path) {
  std::ifstream file{path, std::ios::binary};
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

std::optional<std::int64_t> number_of(const std::string& name) {
  std::int64_t value = 0;
  const auto [end, failed] = std::from_chars(name.data(), name.data() + name.size(), value);
  return failed == std::errc{} && end == name.data() + name.size() ? std::optional{value} : std::nullopt;
}

// A process that has ended has no environment any more, reaped or not.
bool carries(std::int64_t pid, const std::string& mark) {
  const auto variables = '\0' + text_of(proc(pid) / "environ");
  return variables.find('\0' + (mark_variable + ("=" + mark)) + '\0') != std::string::npos;
}

std::uint64_t entries_in(const fs::path& folder) {
  std::error_code failed;
  std::uint64_t count = 0;
  for (fs::directory_iterator entry{folder, failed}, end; !failed && entry != end; entry.increment(failed))
    ++count;
  return count;
}

process_usage usage_of(std::int64_t pid) {
  std::istringstream pages{text_of(proc(pid) / "statm")};
  std::uint64_t whole = 0;
  std::uint64_t resident = 0;
  pages >> whole >> resident;
  return {entries_in(proc(pid) / "fd"), resident * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE))};
}

// "PID (NAME) STATE ..."
std::string describe(std::int64_t pid) {
  const auto stat = text_of(proc(pid) / "stat");
  const auto name = stat.find('(');
  const auto end = stat.rfind(')');
  if (name == std::string::npos || end == std::string::npos || stat.size() < end + 3)
    return std::to_string(pid);
  return std::to_string(pid) + " " + stat.substr(name, end - name + 1) + " in state " + stat[end + 2];
}

std::uint64_t median(const std::deque<process_usage>& of, std::uint64_t process_usage::*what) {
  std::vector<std::uint64_t> values;
  for (const auto& usage : of)
    values.push_back(usage.*what);
  std::ranges::nth_element(values, values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2));
  return values[values.size() / 2];
}

} // namespace

void keep_most(process_usage& most, const process_usage& usage) {
  most.descriptors = std::max(most.descriptors, usage.descriptors);
  most.resident_bytes = std::max(most.resident_bytes, usage.resident_bytes);
}

std::vector<std::int64_t> process_watch::living() const {
  std::vector<std::int64_t> found;
  std::error_code failed;
  for (fs::directory_iterator entry{"/proc", failed}, end; !failed && entry != end; entry.increment(failed)) {
    const auto pid = number_of(entry->path().filename().string());
    if (pid && carries(*pid, mark_)) found.push_back(*pid);
  }
  return found;
}

std::vector<std::string> process_watch::describe_living() const {
  std::vector<std::string> lines;
  for (const auto pid : living())
    lines.push_back(describe(pid));
  return lines;
}

bool process_watch::signal(std::int64_t pid, int number) const {
  const unique_fd process{static_cast<int>(::syscall(SYS_pidfd_open, pid, 0))};
  if (!process || !carries(pid, mark_)) return false; // PW-1: the descriptor pins the process that was read
  return ::syscall(SYS_pidfd_send_signal, process.get(), number, nullptr, 0) == 0;
}

void process_watch::signal_all(int number) const {
  for (const auto pid : living())
    (void)signal(pid, number);
}

void process_watch::sample() {
  for (const auto pid : living()) {
    const auto usage = usage_of(pid);
    if (usage.descriptors == 0) continue; // it has just ended
    auto& one = samples_[pid];
    keep_most(one.most, usage);
    one.newest.push_back(usage);
    if (one.newest.size() > samples_kept) one.newest.pop_front();
  }
}

std::map<std::int64_t, process_usage> process_watch::at_end() const {
  std::map<std::int64_t, process_usage> found;
  for (const auto& [pid, one] : samples_) {
    if (one.newest.size() == samples_kept)
      found[pid] = {median(one.newest, &process_usage::descriptors),
                    median(one.newest, &process_usage::resident_bytes)};
  }
  return found;
}

std::map<std::int64_t, process_usage> process_watch::at_most() const {
  std::map<std::int64_t, process_usage> found;
  for (const auto& [pid, one] : samples_)
    found[pid] = one.most;
  return found;
}

std::uint64_t own_descriptors() {
  return entries_in("/proc/self/fd");
}

} // namespace troupe::chaos
