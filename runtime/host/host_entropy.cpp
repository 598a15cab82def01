#include "runtime/host/host_entropy.hpp"

#include <array>
#include <cerrno>
#include <ctime>

#include <sys/random.h>

#include "runtime/base/invariant.hpp"

namespace troupe {

std::uint64_t host_entropy::next() {
  std::uint64_t value = 0;
  ssize_t got = 0;
  do {
    got = ::getrandom(&value, sizeof(value), 0);
  } while (got < 0 && errno == EINTR);
  invariant(got == sizeof(value), "host_entropy: the system gives eight random bytes");
  return value;
}

std::string wall_clock_text() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  ::gmtime_r(&now, &parts);
  std::array<char, 32> text{};
  const auto length = std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &parts);
  return {text.data(), length};
}

} // namespace troupe
