#include "runtime/host/secret_fd.hpp"

#include <cerrno>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "runtime/host/system_error.hpp"

namespace troupe {
namespace {

// Not F_SEAL_WRITE: it is refused for as long as the kernel holds the page for itself (staging_memfd.cpp).
constexpr int seals = F_SEAL_FUTURE_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

bool sealed(int fd) {
  const int found = ::fcntl(fd, F_GET_SEALS);
  return found >= 0 && (found & seals) == seals;
}

} // namespace

expected<unique_fd> make_secret_fd(std::string_view secret) {
  if (secret.empty() || secret.size() > secret_bytes_max)
    return error{errc::bad_argument, "a secret has 1 to " + std::to_string(secret_bytes_max) + " bytes"};
  unique_fd fd{::memfd_create("troupe-secret", MFD_CLOEXEC | MFD_ALLOW_SEALING)};
  if (!fd) return file_error("create", "secret memory", errno);
  // A write to fresh memory of one page is never partial.
  if (::write(fd.get(), secret.data(), secret.size()) != static_cast<ssize_t>(secret.size()) ||
      ::fcntl(fd.get(), F_ADD_SEALS, seals) != 0)
    return file_error("fill", "secret memory", errno);
  return fd;
}

expected<std::string> read_secret_fd(int fd) {
  const auto wrong = [fd] {
    return error{errc::bad_argument,
                 "descriptor " + std::to_string(fd) + " holds no secret; the parent sets it"};
  };
  if (fd < 3 || !sealed(fd)) return wrong();
  const unique_fd owned{fd};
  std::string secret(secret_bytes_max, '\0');
  const auto got = ::pread(fd, secret.data(), secret.size(), 0);
  if (got <= 0) return wrong();
  secret.resize(static_cast<std::size_t>(got));
  return secret;
}

} // namespace troupe
