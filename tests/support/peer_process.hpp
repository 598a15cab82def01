// A second process for the UCX tests: started by path, met through its standard output, ended by its pid.
#pragma once

#include <array>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/seams/path_secret.hpp"
#include "runtime/seams/transport.hpp"

namespace troupe::test {

inline constexpr job_id peer_job{0x7472, 0x6f75};
inline const path_secret peer_secret{path_secret::key{std::byte{3}}};

inline std::string hex_of(const peer_address& bytes) {
  std::string text;
  std::array<char, 3> digits{};
  for (const auto byte : bytes) {
    std::snprintf(digits.data(), digits.size(), "%02x", static_cast<unsigned>(byte));
    text += digits.data();
  }
  return text;
}
inline peer_address address_of(std::string_view hex) {
  peer_address bytes;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2)
    bytes.push_back(static_cast<std::byte>(std::strtoul(std::string{hex.substr(i, 2)}.c_str(), nullptr, 16)));
  return bytes;
}
inline incarnation_id incarnation_of(const std::string& hex) {
  return {std::strtoull(hex.substr(0, 16).c_str(), nullptr, 16),
          std::strtoull(hex.substr(16, 16).c_str(), nullptr, 16)};
}

class peer_process {
public:
  peer_process(const std::string& program, const std::string& role, const transport& parent) {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) return;
    const auto who = to_string(parent.self());
    const auto address = hex_of(parent.local_address());
    std::array<char*, 5> arguments{const_cast<char*>(program.c_str()), const_cast<char*>(role.c_str()),
                                   const_cast<char*>(who.c_str()), const_cast<char*>(address.c_str()),
                                   nullptr};
    posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    if (::posix_spawn(&pid_, program.c_str(), &actions, nullptr, arguments.data(), environ) != 0) pid_ = -1;
    ::posix_spawn_file_actions_destroy(&actions);
    ::close(ends[1]);
    if (auto* stream = ::fdopen(ends[0], "r")) {
      std::array<char, 8192> line{};
      if (std::fgets(line.data(), line.size(), stream) != nullptr) read(line.data());
      std::fclose(stream);
    }
  }
  ~peer_process() { kill(); }
  peer_process(const peer_process&) = delete;
  peer_process& operator=(const peer_process&) = delete;

  [[nodiscard]] incarnation_id who() const { return who_; }
  [[nodiscard]] const peer_address& address() const { return address_; }
  void signal(int number) const {
    if (pid_ > 0) ::kill(pid_, number);
  }
  void kill() {
    signal(SIGKILL);
    wait();
  }
  int wait() {
    int status = 0;
    if (pid_ > 0) ::waitpid(pid_, &status, 0);
    pid_ = -1;
    return status;
  }

private:
  void read(const std::string& line) {
    const auto space = line.find(' ');
    if (space != 32) return;
    who_ = incarnation_of(line.substr(0, space));
    address_ = address_of(line.substr(space + 1, line.find('\n') - space - 1));
  }
  pid_t pid_{-1};
  incarnation_id who_;
  peer_address address_;
};

} // namespace troupe::test
