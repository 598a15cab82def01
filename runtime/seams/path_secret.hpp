// Path secret: what the processes of one job have in common, and prove to each other on every path.
//
// The rendezvous gives it to whoever has proved the job token; the transport takes it. It is in no message,
// log, error, argument or environment, and is wiped from memory when a copy of it goes.
#pragma once

#include <array>
#include <cstddef>

namespace troupe {

class path_secret {
public:
  using key = std::array<std::byte, 32>;
  path_secret() = default; // none yet
  explicit path_secret(const key& bytes)
      : bytes_{bytes} {}
  path_secret(const path_secret&) = default;
  path_secret& operator=(const path_secret&) = default;
  ~path_secret() {
    volatile auto* at = bytes_.data(); // volatile: the last writes to an object are not dropped
    for (std::size_t i = 0; i < bytes_.size(); ++i)
      at[i] = std::byte{0};
  }

  [[nodiscard]] bool valid() const { return bytes_ != key{}; }
  [[nodiscard]] const key& bytes() const { return bytes_; }

private:
  key bytes_{};
};

} // namespace troupe
