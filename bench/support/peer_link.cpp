#include "bench/support/peer_link.hpp"

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <utility>

#include <spawn.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

namespace troupe::bench {
namespace {

constexpr int peer_fd = 3; // at the peer
constexpr std::uint32_t text_bytes_max = 1U << 20U;

error lost() {
  return {errc::process_died, "the other process of this measurement has ended"};
}

bool transfer(int fd, char* at, std::size_t left, bool out) {
  while (left > 0) {
    const auto moved = out ? ::send(fd, at, left, MSG_NOSIGNAL) : ::recv(fd, at, left, 0);
    if (moved < 0 && errno == EINTR) continue;
    if (moved <= 0) return false;
    at += moved;
    left -= static_cast<std::size_t>(moved);
  }
  return true;
}

} // namespace

expected<peer_link> peer_link::start(std::vector<std::string> arguments) {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0)
    return error{errc::internal, std::string{"no socket pair: "} + std::strerror(errno)};
  unique_fd own{ends[0]};
  const unique_fd given{ends[1]};
  arguments.insert(arguments.begin(), "peer");
  arguments.insert(arguments.end(), {"--peer", std::to_string(peer_fd)});
  std::vector<char*> pointers;
  for (auto& one : arguments)
    pointers.push_back(one.data());
  pointers.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, given.get(), peer_fd);
  pid_t child = 0;
  const int failed = ::posix_spawn(&child, "/proc/self/exe", &actions, nullptr, pointers.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  if (failed != 0)
    return error{errc::internal, std::string{"the second process cannot start: "} + std::strerror(failed)};
  return peer_link{std::move(own), child};
}

peer_link peer_link::inherited(int fd) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  return peer_link{unique_fd{fd}, 0};
}

peer_link::peer_link(peer_link&& other) noexcept
    : fd_{std::move(other.fd_)}
    , child_{std::exchange(other.child_, 0)} {}

peer_link::~peer_link() {
  fd_.reset();
  if (child_ != 0) ::waitpid(child_, nullptr, 0);
}

expected<void> peer_link::say(std::string_view text) {
  auto bytes = static_cast<std::uint32_t>(text.size());
  std::string framed(sizeof bytes, '\0');
  std::memcpy(framed.data(), &bytes, sizeof bytes);
  framed += text;
  if (!transfer(fd_.get(), framed.data(), framed.size(), true)) return lost();
  return {};
}

expected<std::string> peer_link::hear() {
  std::uint32_t bytes = 0;
  if (!transfer(fd_.get(), reinterpret_cast<char*>(&bytes), sizeof bytes, false)) return lost();
  if (bytes > text_bytes_max) return error{errc::corrupt, "the other process says too much"};
  std::string text(bytes, '\0');
  if (!transfer(fd_.get(), text.data(), text.size(), false)) return lost();
  return text;
}

expected<std::string> peer_link::hear_within(duration limit) {
  const auto patience = [&](std::chrono::microseconds time) {
    const auto whole = std::chrono::duration_cast<std::chrono::seconds>(time);
    const timeval value{.tv_sec = whole.count(), .tv_usec = (time - whole).count()};
    return ::setsockopt(fd_.get(), SOL_SOCKET, SO_RCVTIMEO, &value, sizeof value) == 0;
  };
  if (!patience(std::chrono::duration_cast<std::chrono::microseconds>(limit))) return lost();
  errno = 0;
  auto heard = hear();
  const bool late = !heard && (errno == EAGAIN || errno == EWOULDBLOCK);
  (void)patience(std::chrono::microseconds{0});
  if (late) return error{errc::timed_out, "the other process does not answer"};
  return heard;
}

void peer_link::kill() {
  if (child_ != 0) ::kill(child_, SIGKILL);
}

} // namespace troupe::bench
