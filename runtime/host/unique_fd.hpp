// A file descriptor with one owner, closed on destruction.
#pragma once

#include <utility>

#include <unistd.h>

namespace troupe {

class unique_fd {
public:
  unique_fd() = default;
  explicit unique_fd(int fd)
      : fd_{fd} {}
  unique_fd(unique_fd&& other) noexcept
      : fd_{std::exchange(other.fd_, -1)} {}
  unique_fd& operator=(unique_fd&& other) noexcept {
    if (this != &other) {
      reset();
      fd_ = std::exchange(other.fd_, -1);
    }
    return *this;
  }
  ~unique_fd() { reset(); }

  explicit operator bool() const { return fd_ >= 0; }
  [[nodiscard]] int get() const { return fd_; }
  [[nodiscard]] int release() { return std::exchange(fd_, -1); }
  void reset() noexcept {
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
  }

private:
  int fd_{-1};
};

} // namespace troupe
