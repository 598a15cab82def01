// Peer link: a program starts a second process of itself, and the two exchange addresses and results.
//
// Owns:     one end of a socket pair; at the starting side also the process, which does not outlive it.
// Runs on:  its caller's thread; `hear` blocks. Nothing that is measured travels here.
// Fails:    errc::process_died: the other end is gone.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

#include "runtime/base/error.hpp"
#include "runtime/host/unique_fd.hpp"
#include "runtime/seams/clock.hpp"

namespace troupe::bench {

class peer_link {
public:
  // Runs this program again with `arguments` and `--peer FD`.
  [[nodiscard]] static expected<peer_link> start(std::vector<std::string> arguments);
  // At the peer: the descriptor that `--peer` named. The peer is killed when its starter ends.
  [[nodiscard]] static peer_link inherited(int fd);
  ~peer_link(); // the process started gets an end of stream, and is waited for
  peer_link(peer_link&& other) noexcept;
  peer_link& operator=(peer_link&&) = delete;

  [[nodiscard]] expected<void> say(std::string_view text);
  [[nodiscard]] expected<std::string> hear();
  // As `hear`, but not for ever: errc::timed_out when nothing has come for so long.
  [[nodiscard]] expected<std::string> hear_within(duration limit);
  void kill(); // the process started; its end of stream follows

private:
  peer_link(unique_fd fd, pid_t child)
      : fd_{std::move(fd)}
      , child_{child} {}
  unique_fd fd_;
  pid_t child_{0}; // 0: none of ours
};

} // namespace troupe::bench
