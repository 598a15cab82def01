#include "runtime/host/host_process.hpp"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <map>
#include <string_view>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <fcntl.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/host/black_box_memory.hpp"
#include "runtime/host/event_loop.hpp"
#include "runtime/host/system_error.hpp"

namespace troupe {
namespace {

constexpr int first_private_fd = 3;
constexpr int inherited_fd_max = 16384; // keeps the list of descriptors to close short

// Names come before the first '='.
bool same_name(std::string_view a, std::string_view b) {
  const auto end = a.find('=');
  return end != std::string_view::npos && a.substr(0, end + 1) == b.substr(0, std::min(b.size(), end + 1));
}

// The parent's environment with the given variables added or replaced.
std::vector<std::string> merged_environment(const std::vector<std::string>& added) {
  std::vector<std::string> merged = added;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const auto replaced = [entry](const std::string& given) { return same_name(given, *entry); };
    if (std::none_of(added.begin(), added.end(), replaced)) merged.emplace_back(*entry);
  }
  return merged;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> result;
  result.reserve(texts.size() + 1);
  for (auto& text : texts)
    result.push_back(text.data());
  result.push_back(nullptr);
  return result;
}

class spawn_settings {
public:
  spawn_settings() {
    posix_spawn_file_actions_init(&actions_);
    posix_spawnattr_init(&attributes_);
  }
  ~spawn_settings() {
    posix_spawn_file_actions_destroy(&actions_);
    posix_spawnattr_destroy(&attributes_);
  }
  spawn_settings(const spawn_settings&) = delete;
  spawn_settings& operator=(const spawn_settings&) = delete;

  // `kept` sorted. Every number below the largest kept one is closed by name, the rest at once: also what
  // other threads and libraries open meanwhile, with or without close-on-exec (HP-4).
  [[nodiscard]] int keep_only(const std::vector<int>& kept) {
    int failed = posix_spawn_file_actions_addopen(&actions_, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    int next = first_private_fd;
    for (const int fd : kept) {
      for (; next < fd && failed == 0; ++next)
        failed = posix_spawn_file_actions_addclose(&actions_, next);
      // Onto itself: clears close-on-exec in the child only.
      if (failed == 0) failed = posix_spawn_file_actions_adddup2(&actions_, fd, fd);
      next = fd + 1;
    }
    if (failed == 0) failed = posix_spawn_file_actions_addclosefrom_np(&actions_, next);
    return failed;
  }

  [[nodiscard]] int default_signals() {
    sigset_t none;
    sigset_t all;
    sigemptyset(&none);
    sigfillset(&all);
    int failed = posix_spawnattr_setsigmask(&attributes_, &none);
    if (failed == 0) failed = posix_spawnattr_setsigdefault(&attributes_, &all);
    if (failed == 0)
      failed = posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    return failed;
  }

  [[nodiscard]] int spawn(const std::string& program, char* const* arguments, char* const* variables,
                          pid_t& pid) const {
    return posix_spawn(&pid, program.c_str(), &actions_, &attributes_, arguments, variables);
  }

private:
  posix_spawn_file_actions_t actions_{};
  posix_spawnattr_t attributes_{};
};

expected<pid_t> spawn(const process_spec& spec, int box_fd) {
  std::vector<int> kept = spec.inherited_fds;
  kept.push_back(box_fd);
  std::sort(kept.begin(), kept.end());
  kept.erase(std::unique(kept.begin(), kept.end()), kept.end());
  if (kept.front() < first_private_fd || kept.back() > inherited_fd_max)
    return error{errc::bad_argument,
                 "an inherited descriptor is a number between 3 and " + std::to_string(inherited_fd_max)};

  std::vector<std::string> added = spec.environment;
  added.push_back(std::string{black_box_variable} + "=" + std::to_string(box_fd));
  auto variables = merged_environment(added);
  std::vector<std::string> arguments{spec.program};
  arguments.insert(arguments.end(), spec.arguments.begin(), spec.arguments.end());

  spawn_settings settings;
  pid_t pid = -1;
  int failed = settings.keep_only(kept);
  if (failed == 0) failed = settings.default_signals();
  if (failed == 0)
    failed = settings.spawn(spec.program, pointers(arguments).data(), pointers(variables).data(), pid);
  if (failed != 0) return file_error("start", spec.program, failed);
  return pid;
}

// Where SIGCHLD is ignored the system reaps children by itself, and nobody learns how they ended.
bool children_can_be_reaped() {
  struct sigaction current {};
  if (::sigaction(SIGCHLD, nullptr, &current) != 0) return false;
  return current.sa_handler != SIG_IGN && (current.sa_flags & SA_NOCLDWAIT) == 0;
}

enum class ending : unsigned char { wait, poll };

// Reaps; pid 0 in the result: it still runs; exit code -1: an embedding program was faster and reaped it,
// so nobody knows how it ended. By process id, which is ours until reaped: a pidfd that Asio
// watches is non-blocking, and waiting on such a one does not wait.
process_exit reap(std::int64_t pid, ending how) {
  siginfo_t info{};
  int result = 0;
  do {
    result = ::waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | (how == ending::poll ? WNOHANG : 0));
  } while (result != 0 && errno == EINTR);
  if (result != 0) return {pid, false, -1};
  if (info.si_pid == 0) return {};
  return {pid, info.si_code != CLD_EXITED, info.si_status};
}

} // namespace

struct host_process::state : std::enable_shared_from_this<host_process::state> {
  struct child {
    child(boost::asio::io_context& io, int pidfd, process_exit_handler handler)
        : ended{io, pidfd}
        , on_exit{std::move(handler)} {}
    boost::asio::posix::stream_descriptor ended; // readable once the process has ended
    process_exit_handler on_exit;
  };

  explicit state(event_loop& owner)
      : loop{owner} {}

  void watch(std::int64_t pid) {
    children.at(pid)->ended.async_wait(
        boost::asio::posix::stream_descriptor::wait_read,
        [self = shared_from_this(), pid](const boost::system::error_code&) { self->ended(pid); });
  }

  void ended(std::int64_t pid) {
    const auto found = children.find(pid);
    if (found == children.end()) return; // destroyed meanwhile
    const auto how = reap(pid, ending::poll);
    if (how.pid == 0) return watch(pid);
    auto on_exit = std::move(found->second->on_exit);
    children.erase(found);
    if (on_exit) on_exit(how);
  }

  void close() {
    for (const auto& [pid, one] : children)
      ::syscall(SYS_pidfd_send_signal, one->ended.native_handle(), SIGKILL, nullptr, 0);
    for (const auto& [pid, one] : children)
      (void)reap(pid, ending::wait);
    children.clear();
  }

  event_loop& loop;
  std::map<std::int64_t, std::unique_ptr<child>> children;
};

host_process::host_process(event_loop& loop)
    : state_{std::make_shared<state>(loop)} {}

host_process::~host_process() {
  state_->close();
}

expected<child_process> host_process::start(const process_spec& spec, process_exit_handler on_exit) {
  if (!children_can_be_reaped())
    return error{errc::bad_argument, "cannot start '" + spec.program +
                                         "': this program ignores SIGCHLD, so its children cannot be "
                                         "reaped; leave SIGCHLD at its default"};
  auto box = make_black_box();
  if (!box) return box.failure().at("start " + spec.program);
  const auto pid = spawn(spec, box->fd.get());
  if (!pid) return pid.failure();
  const auto pidfd = static_cast<int>(::syscall(SYS_pidfd_open, *pid, 0));
  if (pidfd < 0) {
    const int failed = errno;
    ::kill(*pid, SIGKILL);
    ::waitpid(*pid, nullptr, 0);
    return file_error("watch", spec.program, failed);
  }
  state_->children.emplace(*pid,
                           std::make_unique<state::child>(state_->loop.io(), pidfd, std::move(on_exit)));
  state_->watch(*pid);
  return child_process{*pid, box->box};
}

expected<void> host_process::signal(std::int64_t pid, int signal_number) {
  const auto found = state_->children.find(pid);
  if (found != state_->children.end() &&
      ::syscall(SYS_pidfd_send_signal, found->second->ended.native_handle(), signal_number, nullptr, 0) == 0)
    return {};
  if (found == state_->children.end() || errno == ESRCH)
    return error{errc::not_found, "process " + std::to_string(pid) + " has ended"};
  return error{errc::bad_argument, "cannot send signal " + std::to_string(signal_number) + " to process " +
                                       std::to_string(pid) + ": " + system_text(errno)};
}

std::size_t host_process::running() const {
  return state_->children.size();
}

} // namespace troupe
